"""Groups of nodes and the providers that make their machines."""

from pathlib import Path

from pydantic import Field

from steward.model.settings.types import NodeList, ProviderKind, Section, SomeNodes, Words


class GroupSettings(Section):
    """Nodes that Steward may repair, and who makes their machines. A node in no group is only watched."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="Name of the group: a-z, 0-9 and `-`.")
    nodes: SomeNodes = Field(description="Slurm's node names as a host list, for example `n[1-6]`.")
    provider: ProviderKind = Field(description="Which `[provider.*]` table makes the machines.")


class StaticProvider(Section):
    """Machines that are simply there: reboot by command, spares taken from a pool."""

    spares: NodeList = Field(default="", description="Nodes that may stand in for a broken one, as a host list.")
    reboot_command: tuple[str, ...] = Field(
        default=(),
        description="argv that reboots a machine, `{node}` is replaced (no shell); empty: a person must do it.",
    )
    command_timeout_s: float = Field(default=120.0, ge=1, le=3600, description="Time limit of that command.")


class LocalProvider(Section):
    """The local test bed: an instance is a slurmd and its agent as processes of this machine."""

    dir: Path = Field(description="The test bed's directory.")


class DockerProvider(Section):
    """The docker test bed: an instance is a container."""

    image: str = Field(min_length=1, description="Image of a node.")
    network: str = Field(min_length=1, description="Network that the nodes are on.")
    cluster: str = Field(min_length=1, description="Label that tells this test bed's containers from others'.")
    engine: str = Field(default="unix:///var/run/docker.sock", description="Where the engine listens.")
    mounts: Words = Field(default=(), description="Further binds of a node, `SOURCE:TARGET[:ro]`.")
    hosts: Words = Field(
        default=(),
        description="`NAME=ADDRESS` of every machine, known to all nodes; a node gets the address of its name.",
    )
    environment: Words = Field(default=(), description="`NAME=VALUE` words that a node's first process gets.")
    faults: Path | None = Field(
        default=None, description="Directory in which a file `refuse-launch` makes launches fail for want of capacity."
    )


class ProviderSettings(Section):
    """Who makes machines; each group names one of these."""

    static: StaticProvider | None = None
    local: LocalProvider | None = None
    docker: DockerProvider | None = None
