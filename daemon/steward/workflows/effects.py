"""What an action does: a table from its class to the call of a port. New actions are rows here and nothing else.

`apply` runs the rows one after the other, in the order of the plan, each as one call.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from steward.accounting_port import AccountingPort
from steward.model.action import (
    Action,
    CancelJob,
    CancelReplica,
    DropQos,
    DropTeam,
    FreeNodes,
    KeepNodes,
    MarkJob,
    MoveJob,
    ReleaseNodes,
    ReserveNodes,
    ResizeRun,
    SetNodeCount,
    SetQos,
    SetTeam,
    SubmitDeep,
    SubmitReplica,
)
from steward.ports import AgentPort, Permanent, ProviderPort, SitePort, SlurmPort, WitnessPort


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where actions go. No provider: no group of the settings has one. No accounting: this Slurm has none."""

    slurm: SlurmPort
    provider: ProviderPort | None
    agents: AgentPort
    witness: WitnessPort
    site: SitePort
    accounting: AccountingPort | None = None

    @property
    def accounts(self) -> AccountingPort:
        """Raises Permanent where there is none."""
        if self.accounting is None:
            raise Permanent("Slurm's accounting is not used here: no quota can be kept")
        return self.accounting


EffectAction = (
    ReserveNodes
    | SubmitDeep
    | ReleaseNodes
    | KeepNodes
    | FreeNodes
    | SetQos
    | DropQos
    | SetTeam
    | DropTeam
    | MoveJob
    | MarkJob
    | SetNodeCount
    | CancelJob
    | ResizeRun
    | SubmitReplica
    | CancelReplica
)
"""Those that have a row."""

TABLE: Mapping[type[Action], Callable[[Ports, Any], None]] = {
    ReserveNodes: lambda to, a: to.slurm.reserve(a.name, a.nodes, a.seconds),
    SubmitDeep: lambda to, a: to.slurm.submit_deep(a.name, a.nodes, a.argv, seconds=a.seconds, output=a.output),
    ReleaseNodes: lambda to, a: to.slurm.release(a.name),
    KeepNodes: lambda to, a: to.slurm.keep_nodes(a.name, a.nodes, a.seconds),
    FreeNodes: lambda to, a: to.slurm.free_nodes(a.name),
    SetQos: lambda to, a: to.accounts.set_qos(a),
    DropQos: lambda to, a: to.accounts.drop_qos(a),
    SetTeam: lambda to, a: to.accounts.set_team(a),
    DropTeam: lambda to, a: to.accounts.remove_account(a.account),
    MoveJob: lambda to, a: to.accounts.move_job(a),
    MarkJob: lambda to, a: to.accounts.mark_job(a),
    SetNodeCount: lambda to, a: to.accounts.set_node_count(a),
    CancelJob: lambda to, a: to.accounts.cancel_job(a),
    ResizeRun: lambda to, a: to.agents.tell_run(a),
    SubmitReplica: lambda to, a: to.agents.tell_run(a),
    CancelReplica: lambda to, a: to.slurm.cancel_replica(a.job, a.run),
}


def take_effect(to: Ports, action: EffectAction) -> None:
    """Raises what the port raises."""
    TABLE[type(action)](to, action)
