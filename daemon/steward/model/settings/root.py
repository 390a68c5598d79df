"""The whole file as one value."""

from types import MappingProxyType

from pydantic import Field

from steward.model.desired import Desired
from steward.model.ids import NodeName
from steward.model.instance import SPARES, Slot
from steward.model.settings.checks import ChecksSettings
from steward.model.settings.policies import RepairSettings, ResumeSettings
from steward.model.settings.providers import GroupSettings, ProviderSettings
from steward.model.settings.sections import (
    AgentSettings,
    ApiSettings,
    ClusterSettings,
    HeadSettings,
    HealthSettings,
)
from steward.model.settings.types import ProviderKind, Section, expand_nodes


class Settings(Section):
    """Everything a site can say. Every key has a default except those of a group and of a test bed's provider."""

    cluster: ClusterSettings = ClusterSettings()
    head: HeadSettings = HeadSettings()
    api: ApiSettings = ApiSettings()
    agent: AgentSettings = AgentSettings()
    health: HealthSettings = HealthSettings()
    checks: ChecksSettings = ChecksSettings()
    resume: ResumeSettings = ResumeSettings()
    repair: RepairSettings = RepairSettings()
    groups: tuple[GroupSettings, ...] = Field(default=(), description="One `[[groups]]` table per group of nodes.")
    provider: ProviderSettings = ProviderSettings()

    def slots(self) -> dict[NodeName, Slot]:
        """Every node we may repair."""
        grouped = {
            node: Slot(node=node, group=group.name, fixed=group.provider is ProviderKind.STATIC)
            for group in self.groups
            for node in expand_nodes(group.nodes)
        }
        return grouped | {node: Slot(node=node, group=SPARES, fixed=True) for node in self.spares()}

    def spares(self) -> tuple[NodeName, ...]:
        """The nodes that wait to stand in for a broken one."""
        return expand_nodes(self.provider.static.spares) if self.provider.static else ()

    def desired(self) -> Desired:
        """The numbers that the decisions use."""
        return Desired(
            resume=self.resume.policy(),
            repair=self.repair.policy(),
            slots=MappingProxyType(self.slots()),
            modes=MappingProxyType(self.checks.modes()),
            spares=frozenset(self.spares()),
        )
