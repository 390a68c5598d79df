"""Groups of nodes and the providers that make their machines."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field

from steward.model.section import Section
from steward.model.setting_types import NodeCommand, NodeList, ProviderName, Recovery, SomeNodes
from steward.model.settings.clouds import CommandProviderSettings, Ec2ProviderSettings, PowerProviderSettings


class GroupSettings(Section):
    """Nodes that Steward may repair, and the provider of their machines. A node in no group is only watched."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9-]{0,62}$",
        examples=["gpu-workers"],
        description="Name of the group: a-z, 0-9 and `-`.",
    )
    nodes: SomeNodes = Field(description="Node names as a host list, such as `n[1-6]`.")
    provider: ProviderName = Field(description='"static", "command", "power", "ec2", or one of an installed package.')
    recovery: Recovery = Field(
        default=Recovery.AUTOMATIC,
        description='"none": faults are reported, and only a person repairs.',
    )
    hot_spares: int | None = Field(
        default=None, ge=0, le=1000, description="Replaces `resume.hot_spares` for this group."
    )


class StaticProviderSettings(Section):
    """Fixed machines: rebooted by a command; spare nodes, kept drained, stand in for broken ones."""

    spares: NodeList = Field(
        default="",
        description="Spare nodes as a host list, in no group, in the partitions of those they stand in for.",
    )
    reboot: NodeCommand = Field(
        default=(),
        description="argv that power-cycles machine `%n`; empty: a person does.",
    )
    reboot_timeout_s: float = Field(default=120.0, ge=1, le=3600, description="Time limit of `reboot`.")
    status: NodeCommand = Field(
        default=(),
        description="argv with status 0 if machine `%n` is on, 16 at a time; empty: it is on.",
    )


class ProviderSettings(Section):
    """The providers of machines; each group names one of these, or one that an installed package brings."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, Any]] = Field(init=False)

    static: StaticProviderSettings | None = None
    command: CommandProviderSettings | None = None
    power: PowerProviderSettings | None = None
    ec2: Ec2ProviderSettings | None = None

    @property
    def brought(self) -> Mapping[str, Mapping[str, Any]]:
        """The tables of providers that installed packages bring, by name."""
        return self.__pydantic_extra__
