"""`[elastic]`: how training runs grow into idle nodes and give them back."""

from pydantic import Field

from steward.model.section import Section


class ElasticPolicy(Section):
    """Elastic runs (`sbatch --elastic`). A run's own options come before these keys."""

    enabled: bool = Field(
        default=True, description="false: no run grows. Nodes that others need are given back all the same."
    )
    grace_s: float = Field(
        default=600.0,
        ge=1,
        le=86400,
        description="All ranks have saved so long after a change of size was wished for (`grace=`).",
    )
    settle_s: float = Field(
        default=60.0,
        ge=0,
        le=86400,
        description="From the first new node that is ready to the growth: others may come (`settle=`).",
    )
    faulty_s: float = Field(
        default=30.0,
        ge=0,
        le=86400,
        description="How long the replacement of a lost node may take that is on its way (`faulty=`).",
    )
    snooze_s: float = Field(
        default=300.0, ge=0, le=86400, description="No growth for so long after any change of size (`snooze=`)."
    )
    backoff_s: float = Field(
        default=300.0,
        ge=0,
        le=86400,
        description="The same after a growth that did not last, doubled by each later one ... (`backoff=`)",
    )
    backoff_most_s: float = Field(default=3600.0, ge=0, le=604_800, description="... up to this.")
    form_s: float = Field(
        default=900.0, ge=10, le=86400, description="The first step at a new size is made by then, or it has failed."
    )
    pause_s: float = Field(
        default=60.0,
        ge=1,
        le=86400,
        description="What a change of size costs a run that made none yet: a growth must pay for that.",
    )
    growths_at_once: int = Field(default=4, ge=1, le=1000, description="Runs that grow at the same time at most.")
    replica_limit_s: float = Field(
        default=14_400.0, ge=60, le=604_800, description="Time limit of replica jobs; short ones fit into gaps."
    )
