"""Deep checks of machines that are new or repaired: they must pass before the node serves."""

from enum import Enum

from steward.model.case import Step
from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun, slurm_name
from steward.model.group import Role
from steward.model.ids import NodeName
from steward.model.slot import SlotStep
from steward.policy.deep.asks import new_run
from steward.policy.draft import Draft

MOST_RUNS = 2
"""A check that could not tell is made once more; then the node may serve, and that is told."""
RELEASE_S = 120.0


class Start(Enum):
    """How the deep check on start of a node stands."""

    NONE = "none is wanted"
    WAITS = "it goes on; the node stays out of service"
    HELD = "Slurm keeps the node for it: it is to be given back inside the reservation"
    PASSED = "it passed, or could not tell"
    FAILED = "it failed"


def start_of(node: NodeName, waiter: str, draft: Draft) -> Start:
    """`waiter` is the token of the slot or repair that has a new machine. Changes nothing."""
    runs = draft.deeps.of(waiter)
    if not runs and not start_kinds(node, draft):
        return Start.NONE
    last = max(runs, key=lambda run: (run.asked, run.id), default=None)
    if last is None:
        return Start.WAITS
    if last.is_open:
        return Start.HELD if last.has_nodes and _is_held(node, last, draft) else Start.WAITS
    result = last.results.get(node, DeepResult.SKIPPED)
    if result is DeepResult.INCONCLUSIVE and len(runs) < MOST_RUNS:
        return Start.WAITS
    return Start.FAILED if result is DeepResult.FAILED else Start.PASSED


def ask_start(node: NodeName, waiter: str, draft: Draft) -> None:
    """Have the node deep-checked for this waiter, unless that goes on or is over."""
    runs, kinds = draft.deeps.of(waiter), start_kinds(node, draft)
    unclear = all(not run.is_open and run.results.get(node) is DeepResult.INCONCLUSIVE for run in runs)
    if kinds and unclear and len(runs) < MOST_RUNS:
        new_run(DeepCause.ON_START, "steward", kinds, frozenset({node}), draft, waiter=waiter)


def why_failed(waiter: str, draft: Draft) -> str:
    """The grounds of this waiter's last deep check."""
    last = max(draft.deeps.of(waiter), key=lambda run: (run.asked, run.id), default=None)
    return "; ".join(last.why.values()) if last else ""


def start_limit(draft: Draft) -> float:
    """Seconds that the return of a node may take longer for its deep check."""
    rules = draft.want.deep
    return MOST_RUNS * (rules.start_timeout_s + rules.budget_s + RELEASE_S)


def start_kinds(node: NodeName, draft: Draft) -> frozenset[DeepKind]:
    """The checks that a new machine of this node must pass: by its API group, else by the settings."""
    if not draft.want.deep.enabled:
        return frozenset()
    record = draft.slots.get(node)
    if record is None:
        is_ours = node in draft.want.slots and node not in draft.want.spares
        return frozenset(draft.want.deep.on_start if is_ours else ())
    group = draft.groups.get(record.group)
    words = group.on_start_checks if group is not None and group.role is Role.COMPUTE else ()
    return frozenset(kind for kind in DeepKind if kind.value in words)


def is_awaited(run: DeepRun, draft: Draft) -> bool:
    """Whether the slot or repair that it was made for still waits for it."""
    for node in run.nodes:
        case, record = draft.cases.open_of(node), draft.slots.get(node)
        if case is not None and case.token == run.waiter and case.step is Step.RETURN:
            return True
        if record is not None and record.token == run.waiter and record.step is SlotStep.RETURN:
            return True
    return False


def _is_held(node: NodeName, run: DeepRun, draft: Draft) -> bool:
    found = draft.seen.reservations.get(slurm_name(run.token))
    return found is not None and bool(found.ends) and node in found.nodes
