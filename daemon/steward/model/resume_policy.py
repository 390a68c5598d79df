"""The tables `[resume]` and `[[resume.default]]`."""

from pydantic import Field

from steward.model.resume_mode import ResumeMode, SiteDefault
from steward.model.setting_types import HOUR_S, SIGNAL_OR_NONE, AutoResume, ExitCodes, Section, Waits


class ResumeDefault(Section):
    """Batch jobs that are resumed by default: those that match every key of the table.

    The first table that matches counts; a job's own `--auto-resume=`, also `0`, overrides it.
    """

    partition: str = Field(default="", max_length=255, description="Only in this partition; empty: in any.")
    account: str = Field(default="", max_length=255, description="Only of this account; empty: of any.")
    qos: str = Field(default="", max_length=255, description="Only with this QOS; empty: with any.")
    mode: AutoResume = Field(description='What such jobs ask for, for example "1" or "any:2,max=5".')

    def value(self) -> SiteDefault:
        """Return the table as a value for decisions."""
        mode = ResumeMode.parse(self.mode)
        return SiteDefault(partition=self.partition, account=self.account, qos=self.qos, mode=mode)


class ResumePolicy(Section):
    """Resumes of jobs that were submitted with `--auto-resume`."""

    enabled: bool = Field(
        default=True, description="false: every failed job ends with its own status, as without Steward."
    )
    max_resumes: int = Field(default=5, ge=0, le=1000, description="A job is resumed at most this many times.")
    evidence_before_s: float = Field(
        default=600.0, ge=0, le=86400, description="Evidence from up to this long before a failure explains it ..."
    )
    evidence_after_s: float = Field(default=300.0, ge=0, le=86400, description="... and up to this long after it.")
    check_budget_s: float = Field(
        default=2.0,
        ge=0.1,
        le=60,
        description="How long a job's nodes may take to answer the fresh checks after a failure. For a failed "
        "step without evidence: at most a tenth of the time since the job's start or its last "
        "failure, but 0.5 s at least.",
    )
    nudge_first_s: float = Field(
        default=0.3,
        ge=0.1,
        le=60,
        description="A requeued job that does not run yet is nudged (its start time is set to now): time between "
        "the first nudges ...",
    )
    nudge_for_s: float = Field(default=120.0, ge=1, le=86400, description="Nudges come this quickly for this long ...")
    nudge_slow_s: float = Field(
        default=30.0, ge=1, le=3600, description="... then this far apart, while the job waits for free nodes."
    )
    detect_s: float = Field(
        default=6.0,
        ge=0,
        le=60,
        description="A failure waits this long for a silent node before it is treated as the job's own.",
    )
    retry_proof_s: float = Field(
        default=30.0, ge=0, le=3600, description="A retry that fails sooner is not repeated: the job is requeued."
    )
    ask_deadline_s: float = Field(
        default=60.0,
        ge=1,
        le=3600,
        description="A failed job waits this long for a decision at most; then it ends by itself.",
    )
    recheck_s: float = Field(
        default=10.0,
        ge=0,
        le=60,
        description="A failure whose log points to the hardware waits this much longer, for a second check.",
    )
    stalls: int = Field(
        default=2,
        ge=1,
        le=1000,
        description="Resumes in a row that may bring no new checkpoint, where a job's checkpoints are known.",
    )
    youngest_s: float = Field(
        default=180.0, ge=0, le=86400, description="A run younger than this is not resumed without evidence."
    )
    backoff_s: Waits = Field(
        default=(0.0, 0.0, 60.0, 300.0, 900.0),
        description="Shortest time from a job's resume to its next requeue, for the first, second, ... of them; the "
        "last one repeats.",
    )
    final_codes: ExitCodes = Field(
        default=(), description="Exit codes, besides 93, after which a job is not tried again."
    )
    user_errors_stop: bool = Field(
        default=True,
        description="A job of `any:N` whose last lines show an error of its own (an import that fails, CUDA out of "
        "memory) is not resumed without evidence.",
    )
    timeout: bool = Field(
        default=False, description="Jobs that do not say `timeout=` themselves go on after their time limit."
    )
    preempted: bool = Field(
        default=False,
        description="Jobs that Slurm cancelled to make room (PreemptMode=CANCEL) are put back into the queue.",
    )
    checkpoint_signal: str = Field(
        default="",
        pattern=SIGNAL_OR_NONE,
        description='Signal for jobs that go on after their time limit, for example "USR1"; empty: none. Jobs with '
        "a `--signal` of their own get that one as well.",
    )
    checkpoint_before_s: float = Field(
        default=120.0, ge=10, le=86400, description="How long before the time limit that signal is sent."
    )
    default: tuple[ResumeDefault, ...] = Field(
        default=(), description="One `[[resume.default]]` table per kind of jobs that are opted in by the site."
    )
    nudge_max_s: float = Field(
        default=5.0, ge=0.1, le=600, description="Longest time between nudges, up to which `nudge_first_s` grows."
    )
    keep_s: float = Field(
        default=1800.0,
        ge=0,
        le=86400,
        description="The sound nodes of a lost run are kept for its job, while a replacement comes, at most this long; "
        '0: never. Not with repair.mode = "report".',
    )
    keep_others_s: float = Field(
        default=600.0,
        ge=0,
        le=86400,
        description="Kept nodes are freed when another job that could use them has waited this long.",
    )
    keep_percent: float = Field(
        default=100.0, ge=0, le=100, description="At most this share of a partition's nodes is kept at once."
    )
    first: bool = Field(
        default=True,
        description="A resumed job whose nodes are there goes before other waiting jobs, once a resume and for 60 s at "
        "most.",
    )
    hot_spares: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="This many idle, checked nodes of each group are kept for resumed jobs (hot spares). Not "
        'with repair.mode = "report".',
    )
    hot_spares_while_waiting: bool = Field(
        default=False, description="true: idle nodes become hot spares also while users' jobs wait for nodes."
    )
    give_back_time: bool = Field(
        default=True,
        description="The time that a fault cost a running job is added to its time limit, as far as its "
        "partition allows.",
    )
    exclude_culprits_h: float = Field(
        default=24.0, ge=0, le=720, description="A blamed node stays on the job's exclude list this long."
    )

    hang: bool = Field(
        default=True,
        description="Look for jobs that stand still; a job overrides this with `hang=` (docs/job.md).",
    )
    hang_factor: float = Field(
        default=5.0,
        ge=2,
        le=1000,
        description="A job that reports its steps stands still after this many times its usual longest pause ...",
    )
    hang_least_s: float = Field(
        default=300.0,
        ge=10,
        le=86400,
        description="... but not before this; it should be longer than writing a checkpoint takes ...",
    )
    hang_most_s: float = Field(
        default=3600.0, ge=10, le=604800, description="... and at the latest after this, also with no pause known yet."
    )
    hang_quiet_s: float = Field(
        default=1800.0,
        ge=30,
        le=604800,
        description="A job that once worked and uses next to no CPU, GPU and network for this long stands still.",
    )
    hang_stacks_s: float = Field(
        default=20.0,
        ge=1,
        le=600,
        description="How long the nodes of such a job may take to report what its tasks are doing.",
    )

    @property
    def defaults(self) -> tuple[SiteDefault, ...]:
        """Return the site's defaults, of which the first that matches a job counts."""
        return tuple(each.value() for each in self.default)

    @property
    def keep_fraction(self) -> float:
        """Return `keep_percent` as a fraction."""
        return self.keep_percent / 100.0

    @property
    def exclude_culprits_s(self) -> float:
        """Return `exclude_culprits_h` in seconds."""
        return self.exclude_culprits_h * HOUR_S
