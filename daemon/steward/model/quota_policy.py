"""`[quota]`: how quotas of teams are kept in Slurm."""

from pydantic import Field

from steward.model.section import Section, Words


class QuotaPolicy(Section):
    """Quotas of teams, which are made through the API or with `steward quota apply`; nothing is done where none is."""

    enabled: bool = Field(default=True, description="false: quotas are kept and shown, but not written to Slurm.")
    count_filled: bool = Field(
        default=False,
        description="true: vCPUs and memory that a quota did not name and that were filled in limit the team, "
        "too (as on HyperPod).",
    )
    grace_s: float = Field(
        default=60.0,
        ge=0,
        le=65533,
        description="How long a job that must give way runs on after its signal; also GraceTime of the QOS of "
        "borrowed jobs.",
    )
    patience_s: float = Field(
        default=15.0,
        ge=1,
        le=3600,
        description="How long after that Steward waits for Slurm's own preemption before it requeues the job itself.",
    )
    backoff_s: float = Field(
        default=60.0,
        ge=0,
        le=86400,
        description="A job that gave way twice may borrow again only after this long, doubled each further time ...",
    )
    backoff_most_s: float = Field(default=3600.0, ge=0, le=604_800, description="... up to this.")
    rebalance: bool = Field(
        default=False,
        description="true: a borrowed job also gives way to a job of a team that has borrowed less than its own team.",
    )
    rebalance_after_s: float = Field(
        default=600.0,
        ge=10,
        le=604_800,
        description="With `rebalance`: only jobs that have run this long give way, and at most one within this time.",
    )
    borrow_priority: int | None = Field(
        default=None,
        ge=0,
        le=101,
        description="A borrowed job whose priority class is below this weight gives way to any job of a higher "
        "class; none: this rule is off.",
    )
    strict: Words = Field(
        default=(), description="Teams whose jobs start strictly in order: a job that waits holds up those behind it."
    )
    edits_at_once: int = Field(
        default=8, ge=1, le=100, description="At most this many changes to Slurm's accounting in one cycle."
    )
