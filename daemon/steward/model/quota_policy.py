"""`[quota]`: how quotas of teams are kept in Slurm."""

from pydantic import Field

from steward.model.section import Section, Words


class QuotaPolicy(Section):
    """Quotas of teams, which are made through the API or with `steward quota apply`; nothing is done where none is."""

    enabled: bool = Field(
        default=True, description="false: quotas are kept and shown, but nothing of them is written to Slurm."
    )
    count_filled: bool = Field(
        default=False,
        description="Whether vCPU and memory limit a team also where its quota did not name them and they were filled "
        "in (as HyperPod does).",
    )
    grace_s: float = Field(
        default=60.0,
        ge=0,
        le=65533,
        description="From the signal to a job that has to give way to its end; the GraceTime of borrowed jobs.",
    )
    patience_s: float = Field(
        default=15.0,
        ge=1,
        le=3600,
        description="How long after the grace Slurm's own preemption may take before Steward requeues the job itself.",
    )
    backoff_s: float = Field(
        default=60.0,
        ge=0,
        le=86400,
        description="A job that gave way twice borrows again only after this long, doubled by each later time ...",
    )
    backoff_most_s: float = Field(default=3600.0, ge=0, le=604_800, description="... up to this.")
    rebalance: bool = Field(
        default=False,
        description="Whether a job gives way to one of a team that borrowed less than its own team did.",
    )
    rebalance_after_s: float = Field(
        default=600.0,
        ge=10,
        le=604_800,
        description="Only jobs that ran for so long do, and one at a time in this time.",
    )
    borrow_priority: int | None = Field(
        default=None,
        ge=0,
        le=101,
        description="A borrowed job whose priority class is below this weight gives way to any job of a higher class; "
        "none: it does not.",
    )
    strict: Words = Field(
        default=(), description="Teams whose jobs start in order: one that waits holds up those behind it."
    )
    edits_at_once: int = Field(default=8, ge=1, le=100, description="Writes to Slurm's accounting in one turn at most.")
