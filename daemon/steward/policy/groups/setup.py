"""Lifecycle scripts on a new instance, for slots and for repairs alike: what is ordered, and how it stands."""

from dataclasses import dataclass

from steward.model.action import SetUpNode
from steward.model.case import Case
from steward.model.group import Group
from steward.model.health import Advice
from steward.model.ids import Key, NodeName
from steward.model.observed import AgentView
from steward.model.setup import SetupReport, SetupState
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.groups.resource_config import provisioning_parameters, resource_config
from steward.policy.groups.slot_of import features_of

AGAIN_S = 30.0
"""An order that left no trace at the agent is given again: the agent runs each token once per boot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One run of a group's scripts on one instance. `token` is unique to the instance and the try."""

    node: NodeName
    group: Group
    token: str


def setup_of_case(case: Case, draft: Draft) -> Setup | None:
    """The setup that the instance of this repair needs before its checks say anything; None where no scripts are to
    run."""
    record = draft.records.get(case.node)
    group = draft.groups.get(record.group) if record else None
    if record is None or group is None or case.rung is not Advice.REPLACE or not group.lifecycle.has_scripts:
        return None
    return Setup(node=case.node, group=group, token=f"{case.token}-{group.version.serial}")


def report_of(setup: Setup, view: AgentView | None) -> SetupReport | None:
    """The agent's report of this very run."""
    report = view.setup if view and view.connected else None
    return report if report is not None and report.token == setup.token else None


def is_prepared(setup: Setup, view: AgentView | None) -> bool:
    """Nothing is to be run, or it succeeded."""
    if not setup.group.lifecycle.has_scripts:
        return True
    report = report_of(setup, view)
    return report is not None and report.state is SetupState.SUCCEEDED


def failure(setup: Setup, view: AgentView | None) -> str:
    """Why the run failed, in one line; empty while it did not."""
    report = report_of(setup, view)
    if report is None or report.state is not SetupState.FAILED:
        return ""
    status = "" if report.exit_status is None else f", exit status {report.exit_status}"
    last = f": {report.lines[-1]}" if report.lines else ""
    return f"lifecycle scripts did not run successfully: {report.step or 'setup'}{status}; {report.why}{last}"


def ask_setup(setup: Setup, why: Why, draft: Draft) -> None:
    """Order the run unless the agent already tells of it."""
    if report_of(setup, draft.seen.agents.get(setup.node)) is not None:
        return
    action = SetUpNode(
        key=Key(f"setup:{setup.token}"),
        why=why,
        node=setup.node,
        token=setup.token,
        lifecycle=setup.group.lifecycle,
        timeout_s=draft.want.capacity.setup_timeout_s,
        resource_config=resource_config(setup.node, draft),
        provisioning=provisioning_parameters(draft),
        features=features_of(setup.group),
    )
    draft.wish(action, AGAIN_S)
