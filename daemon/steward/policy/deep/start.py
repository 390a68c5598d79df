"""Deep checks that no person asked for: of machines that are new or repaired, which must pass before the node
serves; of suspects at their next idle moment; and of idle nodes in their turn."""

from collections.abc import Collection, Mapping
from enum import Enum

from steward.model.case import Step
from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun, slurm_name
from steward.model.group import Role
from steward.model.ids import NodeName
from steward.model.slot import SlotStep
from steward.policy.deep.crowd import Crowd
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
    UNCLEAR = "it could not be made, so that nobody knows"


def start_of(node: NodeName, waiter: str, draft: Draft) -> Start:
    """`waiter` is the token of the slot or repair that has a new machine. Changes nothing."""
    runs = draft.deeps.of(waiter)
    return _stands(node, runs, draft) if runs or start_kinds(node, draft) else Start.NONE


def launch_of(node: NodeName, waiter: str, draft: Draft) -> Start:
    """Return how the launch test of a node stands. One that could not tell has not shown that jobs can begin there."""
    runs = draft.deeps.of(waiter)
    stands = _stands(node, runs, draft)
    has_passed = any(run.results.get(node) is DeepResult.PASSED for run in runs)
    return Start.UNCLEAR if stands is Start.PASSED and not has_passed else stands


def is_unproved(node: NodeName, run: DeepRun, draft: Draft) -> bool:
    """Return whether a node that the run was made for has not passed (yet)."""
    of = launch_of if run.cause is DeepCause.LAUNCH else start_of
    return of(node, run.waiter, draft) in (Start.WAITS, Start.FAILED, Start.UNCLEAR)


def _stands(node: NodeName, runs: Collection[DeepRun], draft: Draft) -> Start:
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
    kinds = start_kinds(node, draft)
    if kinds and _is_unclear(node, waiter, draft):
        new_run(DeepCause.ON_START, "steward", kinds, frozenset({node}), draft, waiter=waiter)


def ask_launch(node: NodeName, waiter: str, draft: Draft) -> None:
    """Have one job of our own started on the node for this waiter, unless that goes on or is over."""
    if _is_unclear(node, waiter, draft):
        new_run(DeepCause.LAUNCH, "steward", frozenset(), frozenset({node}), draft, waiter=waiter)


def _is_unclear(node: NodeName, waiter: str, draft: Draft) -> bool:
    runs = draft.deeps.of(waiter)
    unclear = all(not run.is_open and run.results.get(node) is DeepResult.INCONCLUSIVE for run in runs)
    return unclear and len(runs) < MOST_RUNS


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
        tokens = (case.token, case.launch_token) if case is not None else ()
        if case is not None and run.waiter in tokens and case.step is Step.RETURN:
            return True
        if record is not None and record.token == run.waiter and record.step is SlotStep.RETURN:
            return True
    return False


def _is_held(node: NodeName, run: DeepRun, draft: Draft) -> bool:
    found = draft.seen.reservations.get(slurm_name(run.token))
    return found is not None and bool(found.ends) and node in found.nodes


SUSPECT_AGAIN_S = 6 * 3600.0
"""A finding that is no proof is looked into once in this time."""
ALL_KINDS = frozenset(DeepKind)


def ask_suspects(doubts: Mapping[NodeName, str], crowd: Crowd, draft: Draft) -> None:
    """Ask for a deep check of each suspect, when its node is idle. `doubts` says why each is one."""
    for name in sorted(doubts.keys() & crowd.idle):
        if not _had(name, SUSPECT_AGAIN_S, draft):
            draft.tell("deep.suspect", f"{name}: {doubts[name]}; a deep check is asked for", node=name)
            new_run(DeepCause.SUSPECT, "steward", ALL_KINDS, frozenset({name}), draft)


def sweep(crowd: Crowd, draft: Draft) -> None:
    """The idle nodes whose last deep check is the longest ago, as many as may be at once, when no user's job waits."""
    rules = draft.want.deep
    if crowd.jobs or any(run.is_open for run in draft.deeps.values()):
        return
    due = [name for name in crowd.idle if _may_sweep(name, draft) and not _had(name, rules.sweep_period_s, draft)]
    chosen = sorted(due, key=lambda name: (_last(name, draft), len(name), name))[: crowd.room()]
    if chosen:
        new_run(DeepCause.SWEEP, "steward", ALL_KINDS, frozenset(chosen), draft)


def _may_sweep(name: NodeName, draft: Draft) -> bool:
    view = draft.seen.agents.get(name)
    return view is not None and view.connected and draft.cases.open_of(name) is None


def _had(name: NodeName, within_s: float, draft: Draft) -> bool:
    """A deep check of it goes on, or was over (whatever it said) or begun so lately."""
    return any(name in run.nodes and (run.is_open or draft.now < run.asked + within_s) for run in draft.deeps.values())


def _last(name: NodeName, draft: Draft) -> float:
    return max((run.asked for run in draft.deeps.values() if name in run.nodes), default=0.0)


# A new deep check, remembered.

SOON_S = 0.05


def new_run(
    cause: DeepCause,
    who: str,
    kinds: frozenset[DeepKind],
    nodes: frozenset[NodeName],
    draft: Draft,
    *,
    waiter: str = "",
) -> DeepRun:
    """The new check waits for its nodes; plans carry it on."""
    run = DeepRun(
        id=f"d{draft.next_case}",
        cause=cause,
        who=who,
        kinds=kinds,
        nodes=nodes,
        asked=draft.now,
        entered=draft.now,
        waiter=waiter,
    )
    draft.next_case += 1
    draft.wake(draft.now + SOON_S)
    draft.deeps.keep(run)
    words = ", ".join(sorted(kind.value for kind in kinds)) or "launch"
    draft.tell("deep.asked", f"deep check {run.id} ({words}) of {len(nodes)} nodes: {cause.value}, by {who}")
    return run
