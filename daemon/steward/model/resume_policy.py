"""The tables `[resume]` and `[[resume.default]]`."""

from pydantic import Field

from steward.model.resume_mode import ResumeMode, SiteDefault
from steward.model.section import Section
from steward.model.setting_types import SIGNAL_OR_NONE, AutoResume, ExitCodes, Waits

CHECK_BUDGET_S = 2.0
"""How long a job's nodes may take to answer fresh checks."""


class ResumeDefault(Section):
    """Batch jobs that are resumed by default: those that match every key of the table.

    The first table that matches counts; a job's own `--auto-resume=`, also `0`, overrides it.
    """

    partition: str = Field(default="", max_length=255, description="Only in this partition; empty: in any.")
    account: str = Field(default="", max_length=255, description="Only of this account; empty: of any.")
    qos: str = Field(default="", max_length=255, description="Only with this QOS; empty: with any.")
    mode: AutoResume = Field(description='What such jobs ask for, such as "1" or "any:2,max=5".')

    def value(self) -> SiteDefault:
        """Return the table as a value for decisions."""
        mode = ResumeMode.parse(self.mode)
        return SiteDefault(partition=self.partition, account=self.account, qos=self.qos, mode=mode)


class ResumePolicy(Section):
    """Resumes of jobs that were submitted with `--auto-resume`."""

    enabled: bool = Field(default=True, description="false: failed jobs end, as without Steward.")
    max_resumes: int = Field(default=5, ge=0, le=1000, description="Resumes of one job.")
    detect_s: float = Field(
        default=6.0,
        ge=0,
        le=60,
        description="How long a failure waits for a silent node before it counts as the job's own.",
    )
    ask_deadline_s: float = Field(
        default=60.0,
        ge=1,
        le=3600,
        description="Time limit of a decision; then the failed job ends.",
    )
    stalls: int = Field(
        default=2,
        ge=1,
        le=1000,
        description="Resumes in a row without a new checkpoint, where checkpoints are known.",
    )
    youngest_s: float = Field(default=180.0, ge=0, le=86400, description="A younger run is resumed only with evidence.")
    backoff_s: Waits = Field(
        default=(0.0, 0.0, 60.0, 300.0, 900.0),
        description="Waits before the first, second, ... requeue; the last one repeats.",
    )
    final_codes: ExitCodes = Field(
        default=(), description="Exit codes, besides 93, after which a job is not tried again."
    )
    user_errors_stop: bool = Field(
        default=True,
        description="Without evidence, a job of `any:N` that shows an error of its own is not resumed.",
    )
    timeout: bool = Field(default=False, description="Jobs without `timeout=` go on after their time limit.")
    preempted: bool = Field(
        default=False,
        description="Jobs cancelled by preemption are put back into the queue.",
    )
    checkpoint_signal: str = Field(
        default="",
        pattern=SIGNAL_OR_NONE,
        examples=["USR1"],
        description='Signal before the time limit of jobs that go on after it, such as "USR1"; empty: none.',
    )
    checkpoint_before_s: float = Field(
        default=120.0, ge=10, le=86400, description="How long before the time limit that signal is sent."
    )
    default: tuple[ResumeDefault, ...] = Field(
        default=(), description="One `[[resume.default]]` table per kind of jobs that are opted in by the site."
    )
    keep_s: float = Field(
        default=1800.0,
        ge=0,
        le=86400,
        description="How long a lost run's sound nodes are kept for its job; 0: never.",
    )
    keep_others_s: float = Field(
        default=600.0,
        ge=0,
        le=86400,
        description="Kept nodes are freed when another job waited for them this long.",
    )
    keep_percent: float = Field(default=100.0, ge=0, le=100, description="Share of a partition's nodes kept at once.")
    first: bool = Field(
        default=True,
        description="A resumed job whose nodes are there goes first, for 60 s at most.",
    )
    hot_spares: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="Idle nodes of each group kept for resumed jobs.",
    )
    hot_spares_while_waiting: bool = Field(default=False, description="true: also while users' jobs wait for nodes.")
    give_back_time: bool = Field(
        default=True,
        description="Add the time that a fault cost to the job's time limit.",
    )

    hang: bool = Field(
        default=True,
        description="Look for jobs that stand still, and tell of them; a job's own `hang=` overrides it.",
    )
    hang_least_s: float = Field(
        default=300.0,
        ge=10,
        le=86400,
        description="A job hangs after five times its longest pause between steps, but not "
        "before this (longer than saving takes) ...",
    )
    hang_most_s: float = Field(default=3600.0, ge=10, le=604800, description="... and at the latest after this.")
    hang_quiet_s: float = Field(
        default=1800.0,
        ge=30,
        le=604800,
        description="A job also hangs after this long with next to no use of CPU, GPU and network.",
    )
    hang_not_in: tuple[str, ...] = Field(
        default=(), description="Partitions of whose jobs nothing is told unless they opted in."
    )
    hang_stacks_s: float = Field(
        default=20.0,
        ge=1,
        le=600,
        description="How long its nodes may take to report stacks.",
    )

    @property
    def defaults(self) -> tuple[SiteDefault, ...]:
        """Return the site's defaults, of which the first that matches a job counts."""
        return tuple(each.value() for each in self.default)

    @property
    def keep_fraction(self) -> float:
        """Return `keep_percent` as a fraction."""
        return self.keep_percent / 100.0
