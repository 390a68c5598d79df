"""`[elastic]`: how training runs grow into idle nodes and give them back."""

from pydantic import Field

from steward.model.setting_types import Section


class ElasticPolicy(Section):
    """Elastic runs (`sbatch --elastic`). A run's own options come before these keys."""

    enabled: bool = Field(default=True, description="false: no run grows; nodes that others need are still given back.")
    grace_s: float = Field(
        default=600.0,
        ge=1,
        le=86400,
        description="How long all ranks may take to save a checkpoint before a change of size (`grace=`).",
    )
    settle_s: float = Field(
        default=60.0,
        ge=0,
        le=86400,
        description="How long the first new node that is ready waits for others, so that they join together "
        "(`settle=`).",
    )
    faulty_s: float = Field(
        default=30.0,
        ge=0,
        le=86400,
        description="How long a run waits for the replacement of a lost node, where one is on its way (`faulty=`).",
    )
    snooze_s: float = Field(
        default=300.0, ge=0, le=86400, description="No growth for this long after any change of size (`snooze=`)."
    )
    backoff_s: float = Field(
        default=300.0,
        ge=0,
        le=86400,
        description="No growth for this long after one that did not last (`backoff=`); each further one doubles "
        "the time ...",
    )
    backoff_most_s: float = Field(default=3600.0, ge=0, le=604_800, description="... up to this.")
    form_s: float = Field(
        default=900.0,
        ge=10,
        le=86400,
        description="A change of size has failed when the first step at the new size is not made within this time.",
    )
    pause_s: float = Field(
        default=60.0,
        ge=1,
        le=86400,
        description="Assumed cost of a change of size, for a run that has made none yet; a run grows only where "
        "it gains more.",
    )
    growths_at_once: int = Field(default=4, ge=1, le=1000, description="At most this many runs grow at the same time.")
    replica_limit_s: float = Field(
        default=14_400.0,
        ge=60,
        le=604_800,
        description="How long replica jobs may work; a short time lets Slurm fit them into gaps. Their time limit has "
        "`grace=` and a minute on top.",
    )
