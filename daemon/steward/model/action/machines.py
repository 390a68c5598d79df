"""What providers, and the site's own commands for machines, are asked to do."""

from dataclasses import dataclass

from steward.model.action.base import BaseAction
from steward.model.ids import CaseId, InstanceId, NodeName
from steward.model.instance import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchInstance(BaseAction):
    """Ask the provider for a new instance for a slot; `token` makes it idempotent."""

    slot: Slot
    token: str
    case: CaseId | None = None
    """None: for a slot of an API group, not for a repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(BaseAction):
    instance: InstanceId
    node: NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootInstance(BaseAction):
    instance: InstanceId
    node: NodeName
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackUpNode(BaseAction):
    """Run the site's backup (or restore) command for a node; once done for a key it is not run again."""

    node: NodeName
    instance: InstanceId
    restore: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtAlarms(BaseAction):
    """Ask the site's alarm command about these names; a firing one is the action's failure, with its name."""

    alarms: tuple[str, ...]
