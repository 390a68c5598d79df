"""Groups of nodes and the providers that make their machines."""

from pydantic import Field

from steward.model.setting_types import (
    FullPath,
    NodeCommand,
    NodeList,
    ProviderKind,
    Recovery,
    Section,
    SomeNodes,
    Words,
)
from steward.model.settings.clouds import CommandProviderSettings, Ec2ProviderSettings, PowerProviderSettings


class GroupSettings(Section):
    """Nodes that Steward may repair, and the provider of their machines. A node in no group is only watched."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="Name of the group: a-z, 0-9 and `-`.")
    nodes: SomeNodes = Field(description="Slurm's node names as a host list, for example `n[1-6]`.")
    provider: ProviderKind = Field(description="Which `[provider.*]` table makes the machines.")
    recovery: Recovery = Field(
        default=Recovery.AUTOMATIC,
        description='"none": faults of these nodes are reported, and only what a person asks for is done.',
    )
    hot_spares: int | None = Field(
        default=None, ge=0, le=1000, description="Hot spares of this group, in place of resume.hot_spares."
    )


class StaticProviderSettings(Section):
    """Fixed machines: rebooted by a command; spare nodes, kept drained, stand in for broken ones."""

    spares: NodeList = Field(
        default="",
        description="Spare nodes, as a host list: in no group, but in the partitions of the nodes they stand in for.",
    )
    reboot: NodeCommand = Field(
        default=(),
        description='argv that power-cycles a machine, for example `["/usr/local/sbin/node-power", "cycle", "%n"]`; '
        "`%n` is the node's name; no shell; empty: a person must do it.",
    )
    reboot_timeout_s: float = Field(default=120.0, ge=1, le=3600, description="Time limit of that command.")
    status: NodeCommand = Field(
        default=(),
        description="argv that ends with status 0 when the machine `%n` is on; run for every machine whenever "
        "machines are listed, 16 at a time; empty: a machine counts as on.",
    )
    status_timeout_s: float = Field(default=5.0, ge=0.1, le=60, description="Time limit of that command.")


class LocalProviderSettings(Section):
    """The local test bed: an instance is a slurmd and its agent as processes of this machine."""

    dir: FullPath = Field(description="The test bed's directory.")


class DockerProviderSettings(Section):
    """The docker test bed: an instance is a container."""

    image: str = Field(min_length=1, description="Image of a node.")
    network: str = Field(min_length=1, description="Network that the nodes are on.")
    cluster: str = Field(min_length=1, description="Label that tells this test bed's containers from others'.")
    engine: str = Field(default="unix:///var/run/docker.sock", description="Socket of the engine.")
    mounts: Words = Field(default=(), description="Further binds of a node, `SOURCE:TARGET[:ro]`.")
    hosts: Words = Field(
        default=(),
        description="`NAME=ADDRESS` of every machine, known to all nodes; a node gets the address of its name.",
    )
    environment: Words = Field(default=(), description="`NAME=VALUE` words that a node's first process gets.")
    faults: FullPath | None = Field(
        default=None, description="Directory in which a file `refuse-launch` makes launches fail for want of capacity."
    )


class ProviderSettings(Section):
    """The providers of machines; each group names one of these."""

    static: StaticProviderSettings | None = None
    local: LocalProviderSettings | None = None
    docker: DockerProviderSettings | None = None
    command: CommandProviderSettings | None = None
    power: PowerProviderSettings | None = None
    ec2: Ec2ProviderSettings | None = None
