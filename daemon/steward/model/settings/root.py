"""The whole settings file as one value."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import Field

from steward.model.agent_tables import AgentSettings, ClusterSettings, HealthPolicy
from steward.model.capacity_policy import CapacityPolicy, CapacitySettings, Pool
from steward.model.desired import DeepPolicy, Desired, ElasticPolicy, QuotaPolicy
from steward.model.ids import NodeName
from steward.model.instance import SPARES, Slot
from steward.model.machine_types import BUILT_IN, MachineType
from steward.model.node_names import expand_nodes
from steward.model.repair_policy import RepairPolicy
from steward.model.resume_policy import ResumePolicy
from steward.model.section import Section
from steward.model.setting_types import ProviderKind, Recovery
from steward.model.settings.notify import NotifySettings
from steward.model.settings.providers import GroupSettings, ProviderSettings
from steward.model.settings.sections import ApiSettings, HeadSettings


class Settings(Section):
    """All settings of a site. Every key has a default except those of a group and of a test bed's provider."""

    cluster: ClusterSettings = ClusterSettings()
    head: HeadSettings = HeadSettings()
    api: ApiSettings = ApiSettings()
    agent: AgentSettings = AgentSettings()
    health: HealthPolicy = HealthPolicy()
    checks: Mapping[str, Any] = Field(
        default_factory=dict, description="The tables of checks, for which `steward/checks/` says what may stand there."
    )
    deep: DeepPolicy = DeepPolicy()
    resume: ResumePolicy = ResumePolicy()
    repair: RepairPolicy = RepairPolicy()
    groups: tuple[GroupSettings, ...] = Field(default=(), description="One `[[groups]]` table per group of nodes.")
    provider: ProviderSettings = ProviderSettings()
    capacity: CapacitySettings = CapacitySettings()
    elastic: ElasticPolicy = ElasticPolicy()
    quota: QuotaPolicy = QuotaPolicy()
    notify: tuple[NotifySettings, ...] = Field(
        default=(), description="One `[[notify]]` table for each channel that events are sent to."
    )
    machine_types: tuple[MachineType, ...] = Field(
        default=(), description="One `[[machine_types]]` table per machine type of the site."
    )

    def slots(self) -> dict[NodeName, Slot]:
        """Return the slot of every node that may be repaired, spares included."""
        grouped = {
            node: Slot(
                node=node,
                group=group.name,
                fixed=group.provider == ProviderKind.STATIC,
                reboots=self.reboots(group.provider),
            )
            for group in self.groups
            for node in expand_nodes(group.nodes)
        }
        reboots = self.reboots(ProviderKind.STATIC)
        return grouped | {node: Slot(node=node, group=SPARES, fixed=True, reboots=reboots) for node in self.spares()}

    def reboots(self, provider: str) -> bool:
        """Return whether machines of this provider can be rebooted."""
        match provider:
            case ProviderKind.STATIC:
                return self.provider.static is not None and bool(self.provider.static.reboot)
            case ProviderKind.COMMAND:
                return self.provider.command is not None and self.provider.command.reboot is not None
            case _:
                return provider != ProviderKind.POWER

    def spares(self) -> tuple[NodeName, ...]:
        """Return the spare nodes, in order."""
        return expand_nodes(self.provider.static.spares) if self.provider.static else ()

    def desired(self) -> Desired:
        """Return the settings for decisions, without the modes of checks, which `settings_file.desired` adds."""
        return Desired(
            resume=self.resume,
            repair=self.repair,
            capacity=self.capacity_policy(),
            deep=self.deep,
            elastic=self.elastic,
            quota=self.quota,
            health=self.health,
            unrepaired=frozenset(group.name for group in self.groups if group.recovery is Recovery.NONE),
            hot_spares=MappingProxyType({g.name: g.hot_spares for g in self.groups if g.hot_spares is not None}),
            slots=MappingProxyType(self.slots()),
            spares=frozenset(self.spares()),
            slurm_user=self.cluster.slurm_user,
            agent_socket=str(self.agent.socket),
            page_url=self.head.page_url,
        )

    def capacity_policy(self) -> CapacityPolicy:
        """Return the table `[capacity]` with the parts of other tables about groups."""
        pools = {
            group.name: Pool(
                group=group.name,
                nodes=expand_nodes(group.nodes),
                fixed=group.provider == ProviderKind.STATIC,
                reboots=self.reboots(group.provider),
            )
            for group in self.groups
        }
        return CapacityPolicy.model_construct(
            **dict(self.capacity),
            pools=MappingProxyType(pools),
            types=MappingProxyType({**BUILT_IN, **{each.name: each for each in self.machine_types}}),
            region=self.api.region,
            account=self.api.account,
        )
