"""Deep checks that no person asked for: of new or repaired machines, of suspects, and of idle nodes in turn.

A new or repaired machine must pass before its node serves; a suspect is checked when it is next idle.
"""

from collections.abc import Collection, Mapping
from enum import Enum

from steward.model.case import CaseStep
from steward.model.deep import DeepCause, DeepKind, DeepResult, DeepRun, slurm_name
from steward.model.group import Role
from steward.model.ids import NodeName
from steward.model.slot import SlotStep
from steward.policy.draft import Draft
from steward.policy.facts.crowd import Crowd

MOST_RUNS = 2
"""How often a deep check is made if it is inconclusive; after that the node may serve, and an event says so."""
RELEASE_S = 120.0
"""The time allowed for the release of the node after each deep check."""


class DeepStart(Enum):
    """The standing of the deep check that a new or repaired machine must pass before its node serves."""

    NONE = "no deep check is required"
    WAITS = "the deep check is under way; the node stays out of service"
    HELD = "Slurm reserves the node for the deep check; return it to service inside the reservation"
    PASSED = "the deep check passed or was inconclusive"
    FAILED = "the deep check failed"
    UNCLEAR = "the deep check could not be made: unknown"


def start_of(node: NodeName, waiter: str, draft: Draft) -> DeepStart:
    """Return the standing of a new machine's deep check; `waiter` is the token of its slot or repair."""
    runs = draft.deeps.of(waiter)
    return _standing(node, runs, draft) if runs or start_kinds(node, draft) else DeepStart.NONE


def launch_of(node: NodeName, waiter: str, draft: Draft) -> DeepStart:
    """Return the standing of a node's launch test."""
    runs = draft.deeps.of(waiter)
    stands = _standing(node, runs, draft)
    # an inconclusive launch test has not shown that jobs can begin on the node
    has_passed = any(run.results.get(node) is DeepResult.PASSED for run in runs)
    return DeepStart.UNCLEAR if stands is DeepStart.PASSED and not has_passed else stands


def is_unproved(node: NodeName, run: DeepRun, draft: Draft) -> bool:
    """Return whether a node that the run was made for has not passed (yet)."""
    of = launch_of if run.cause is DeepCause.LAUNCH else start_of
    return of(node, run.waiter, draft) in (DeepStart.WAITS, DeepStart.FAILED, DeepStart.UNCLEAR)


def _standing(node: NodeName, runs: Collection[DeepRun], draft: Draft) -> DeepStart:
    last = max(runs, key=lambda run: (run.asked, run.id), default=None)
    if last is None:
        return DeepStart.WAITS
    if last.is_open:
        return DeepStart.HELD if last.has_nodes and _is_held(node, last, draft) else DeepStart.WAITS
    result = last.results.get(node, DeepResult.SKIPPED)
    if result is DeepResult.INCONCLUSIVE and len(runs) < MOST_RUNS:
        return DeepStart.WAITS
    return DeepStart.FAILED if result is DeepResult.FAILED else DeepStart.PASSED


def ask_start(node: NodeName, waiter: str, draft: Draft) -> None:
    """Ask for a deep check of the node for this waiter, unless one is open or has a result."""
    kinds = start_kinds(node, draft)
    if kinds and _needs_run(node, waiter, draft):
        new_run(DeepCause.ON_START, "steward", kinds, frozenset({node}), draft, waiter=waiter)


def ask_launch(node: NodeName, waiter: str, draft: Draft) -> None:
    """Ask for a launch test of the node for this waiter, unless one is open or has a result."""
    if _needs_run(node, waiter, draft):
        new_run(DeepCause.LAUNCH, "steward", frozenset(), frozenset({node}), draft, waiter=waiter)


def _needs_run(node: NodeName, waiter: str, draft: Draft) -> bool:
    """Return whether all deep checks of this waiter, if any, were inconclusive, and another may be made."""
    runs = draft.deeps.of(waiter)
    unclear = all(not run.is_open and run.results.get(node) is DeepResult.INCONCLUSIVE for run in runs)
    return unclear and len(runs) < MOST_RUNS


def why_failed(waiter: str, draft: Draft) -> str:
    """Return the reasons for the results of this waiter's last deep check."""
    last = max(draft.deeps.of(waiter), key=lambda run: (run.asked, run.id), default=None)
    return "; ".join(last.why.values()) if last else ""


def start_limit(draft: Draft) -> float:
    """Return how many seconds longer a node's return may take because of its deep check."""
    rules = draft.want.deep
    return MOST_RUNS * (rules.start_timeout_s + rules.budget_s + RELEASE_S)


def start_kinds(node: NodeName, draft: Draft) -> frozenset[DeepKind]:
    """Return the kinds of deep check that a new machine of this node must pass, by its API group or the settings."""
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
    """Return whether the slot or repair that the run was made for still waits for the result."""
    for node in run.nodes:
        case, record = draft.cases.open_of(node), draft.slots.get(node)
        tokens = (case.token, case.launch_token) if case is not None else ()
        if case is not None and run.waiter in tokens and case.step is CaseStep.RETURN:
            return True
        if record is not None and record.token == run.waiter and record.step is SlotStep.RETURN:
            return True
    return False


def _is_held(node: NodeName, run: DeepRun, draft: Draft) -> bool:
    found = draft.seen.reservations.get(slurm_name(run.token))
    return found is not None and bool(found.ends) and node in found.nodes


SUSPECT_AGAIN_S = 6 * 3600.0
"""The least time between two deep checks of one suspect."""
ALL_KINDS = frozenset(DeepKind)


def ask_suspects(doubts: Mapping[NodeName, str], crowd: Crowd, draft: Draft) -> None:
    """Ask for a deep check of each suspect whose node is idle; `doubts` are the suspects, with the reason for each."""
    for name in sorted(doubts.keys() & crowd.idle):
        if not _was_asked_within(name, SUSPECT_AGAIN_S, draft):
            draft.tell("deep.suspect", f"{name}: {doubts[name]}; a deep check will follow", node=name)
            new_run(DeepCause.SUSPECT, "steward", ALL_KINDS, frozenset({name}), draft)


def ask_sweep(crowd: Crowd, draft: Draft) -> None:
    """Ask for a deep check of the idle nodes checked longest ago, as many as allowed, if no user's job is waiting."""
    rules = draft.want.deep
    if crowd.jobs or any(run.is_open for run in draft.deeps.values()):
        return
    due = [
        name
        for name in crowd.idle
        if _may_sweep(name, draft) and not _was_asked_within(name, rules.sweep_period_s, draft)
    ]
    chosen = sorted(due, key=lambda name: (_last_asked(name, draft), len(name), name))[: crowd.room()]
    if chosen:
        new_run(DeepCause.SWEEP, "steward", ALL_KINDS, frozenset(chosen), draft)


def _may_sweep(name: NodeName, draft: Draft) -> bool:
    view = draft.seen.agents.get(name)
    return view is not None and view.connected and draft.cases.open_of(name) is None


def _was_asked_within(name: NodeName, within_s: float, draft: Draft) -> bool:
    """Return whether a deep check of the node is open, or was asked for within the last `within_s` seconds."""
    return any(name in run.nodes and (run.is_open or draft.now < run.asked + within_s) for run in draft.deeps.values())


def _last_asked(name: NodeName, draft: Draft) -> float:
    return max((run.asked for run in draft.deeps.values() if name in run.nodes), default=0.0)


# A new deep check in memory.

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
    """Create and return a deep check that waits for its nodes."""
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
