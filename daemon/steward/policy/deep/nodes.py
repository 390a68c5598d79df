"""Which nodes of a waiting deep check are free for it, and how many of them it takes."""

from dataclasses import dataclass

from steward.model.deep import DeepCause, DeepKind, DeepRun
from steward.model.ids import NodeName
from steward.model.node import Node
from steward.policy.deep.crowd import Crowd, is_in_other_run
from steward.policy.draft import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Hurdle:
    """Why a node is not free for a deep check. `is_final`: waiting is of no use."""

    text: str
    is_final: bool = False


def hurdle(name: NodeName, run: DeepRun, crowd: Crowd, draft: Draft) -> Hurdle | None:
    """Why the node cannot be reserved for the check; None where it may be reserved now."""
    node, view = draft.seen.nodes.get(name), draft.seen.agents.get(name)
    if node is None:
        return Hurdle(text="Slurm does not know it", is_final=True)
    if view is None or not view.connected:
        return Hurdle(text="its agent is not connected")
    if is_in_other_run(name, run, draft):
        return Hurdle(text="another deep check has it")
    if run.cause is DeepCause.ON_START:
        return Hurdle(text="jobs are on it") if node.is_busy else None
    return _in_service(node, crowd, draft)


def _in_service(node: Node, crowd: Crowd, draft: Draft) -> Hurdle | None:
    record = draft.slots.get(node.name)
    if draft.cases.open_of(node.name) is not None:
        return Hurdle(text="it is under repair", is_final=True)
    if record is not None and record.is_leaving:
        return Hurdle(text="it leaves its group", is_final=True)
    if node.is_drain or node.is_down:
        return Hurdle(text="it is out of service", is_final=True)
    if node.name in crowd.foreign:
        return Hurdle(text="it is in a reservation of somebody else")
    if node.is_busy:
        return Hurdle(text="jobs run on it")
    if (job := crowd.needed(node)) is not None:
        return Hurdle(text=f"job {job.id} waits and could use it")
    return None if node.name in crowd.idle else Hurdle(text="it is not idle")


def free_nodes(run: DeepRun, crowd: Crowd, draft: Draft) -> list[NodeName]:
    """The nodes of the check that it could take now, in order."""
    left = sorted(run.nodes - run.results.keys(), key=lambda name: (len(name), name))
    return [name for name in left if hurdle(name, run, crowd, draft) is None]


def choose(run: DeepRun, crowd: Crowd, draft: Draft) -> frozenset[NodeName]:
    """The nodes that it takes now: as many of the free ones as may be, once the first of them has waited for the others
    a little. Nodes of a job that has just ended clean up one after the other."""
    free = free_nodes(run, crowd, draft)
    if not free:
        return frozenset()
    gathered = (draft.now if run.free is None else run.free) + draft.want.deep.gather_s
    if len(free) < len(run.nodes - run.results.keys()) and draft.now < gathered:
        draft.wake(gathered)
        return frozenset()
    room = len(free) if run.cause is DeepCause.ON_START else crowd.room()
    taken = free[:room]
    alone = len(taken) == 1 and run.kinds == {DeepKind.CONNECTIVITY}
    return frozenset() if alone else frozenset(taken)


def settle(run: DeepRun, crowd: Crowd, draft: Draft) -> dict[NodeName, str]:
    """Nodes that the waiting check goes on without, and why: it waited long enough, or waiting is of no use."""
    until = run.asked + draft.want.deep.busy_wait_s
    draft.wake(until)
    draft.wake(run.asked + draft.want.deep.gather_s)
    is_over = draft.now >= until and run.cause is not DeepCause.ON_START
    left = run.nodes - run.results.keys()
    if run.kinds == {DeepKind.CONNECTIVITY} and len(left) == 1 and draft.now >= run.asked + draft.want.deep.gather_s:
        return dict.fromkeys(left, "there is no second node to measure with")
    has_no_turn = is_over and not choose(run, crowd, draft)
    found = {}
    for name in left:
        why = hurdle(name, run, crowd, draft)
        if why is not None and (why.is_final or is_over):
            found[name] = why.text
        elif why is None and has_no_turn:
            found[name] = "its turn did not come in time"
    return found
