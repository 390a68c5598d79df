"""Score the pieces of hardware that fail again and again, for people to decide on.

A score comes from repairs and from mishaps: a machine fails under a job, or users exclude its node by name. 28 days
count, each event halved every 14. Nothing is done on a score alone.
"""

import math
from dataclasses import dataclass
from types import MappingProxyType

from steward.model.case import Blow, Case, Mishap, Remedy, Trigger
from steward.model.health import Advice
from steward.model.ids import CaseId, NodeName
from steward.model.memory import Memory
from steward.policy.draft import Draft
from steward.policy.guards.ladder import identity
from steward.policy.traits import Trait

KEPT_S = 28 * 86400.0
HALVED_S = 14 * 86400.0
CANDIDATE = 10.0
"""From this score on a piece is proposed for quarantine."""
TOP = 0.05
"""How many pieces are its top, as a share of the cluster's nodes."""
_REPAIR_WEIGHTS = {Advice.REPLACE: 5.0, Advice.REBOOT: 2.0, Advice.RESET_GPU: 2.0}
_MISHAP_WEIGHTS = {Blow.NODE_FAIL_OF_MANY: 3.0, Blow.NODE_FAIL: 1.0, Blow.EXCLUDED: 1.0}
_WORDS = {
    Blow.NODE_FAIL_OF_MANY: "failed under a job of several nodes",
    Blow.NODE_FAIL: "failed under a job",
    Blow.EXCLUDED: "excluded by a user",
}
_KEPT_OF_ONE = 64
"""How many mishaps of one piece are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One event in a score; `points` is what its age has left of its `weight`."""

    at: float
    what: str
    weight: float
    points: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lemon:
    """A piece of hardware with its score.

    `piece` is a GPU's UUID, a board's serial, else an instance id or a node's name; `node` is its last place.
    """

    piece: str
    node: NodeName
    score: float
    parts: tuple[Part, ...]
    is_top: bool = False

    @property
    def is_candidate(self) -> bool:
        """Return whether the piece is proposed for quarantine."""
        return self.score >= CANDIDATE


def lemons(memory: Memory, nodes: int, now: float) -> tuple[Lemon, ...]:
    """Return all pieces with a score, the worst first; `is_top` marks the first `TOP * nodes` of them."""
    pieces = sorted(memory.remedies.keys() | memory.mishaps.keys())
    scored = [lemon for piece in pieces if (lemon := _lemon(piece, memory, now)) is not None]
    ranked = sorted(scored, key=lambda lemon: (-lemon.score, lemon.piece))
    top = max(1, math.ceil(TOP * nodes))
    return tuple(_with_top(lemon, is_top=place < top) for place, lemon in enumerate(ranked))


def _with_top(lemon: Lemon, *, is_top: bool) -> Lemon:
    """Return the piece with this `is_top`."""
    return Lemon(piece=lemon.piece, node=lemon.node, score=lemon.score, parts=lemon.parts, is_top=is_top)


def _lemon(piece: str, memory: Memory, now: float) -> Lemon | None:
    """Return the score of a piece; None if nothing happened to it lately."""
    repaired = _highest(memory.remedies.get(piece, ()))
    events = [(r.at, r.node, f"case {r.case}: {r.rung.value} for {r.check}", _REPAIR_WEIGHTS[r.rung]) for r in repaired]
    events += [(m.at, m.node, _WORDS[m.blow], _MISHAP_WEIGHTS[m.blow]) for m in memory.mishaps.get(piece, ())]
    recent = sorted(event for event in events if now - event[0] < KEPT_S)
    if not recent:
        return None
    parts = tuple(_part(at, what, weight, now) for at, _, what, weight in recent)
    return Lemon(piece=piece, node=recent[-1][1], score=sum(part.points for part in parts), parts=parts)


def _highest(remedies: tuple[Remedy, ...]) -> list[Remedy]:
    """Return the highest repair of each case that counts against the hardware: a case counts once."""
    order = list(Advice)
    found: dict[CaseId, Remedy] = {}
    for one in remedies:
        before, counts = found.get(one.case), one.rung in _REPAIR_WEIGHTS and not one.for_users
        if counts and (before is None or order.index(one.rung) > order.index(before.rung)):
            found[one.case] = one
    return list(found.values())


def _part(at: float, what: str, weight: float, now: float) -> Part:
    """Return an event with the points that are left of it."""
    return Part(at=at, what=what, weight=weight, points=weight * 0.5 ** (max(0.0, now - at) / HALVED_S))


def score_text(parts: tuple[Part, ...]) -> str:
    """Return the sum as people check it: `5.0 (case c3: replace ...) + 2.4 (...)`."""
    return " + ".join(f"{part.points:.1f} ({part.what})" for part in parts)


# Mishaps: events of a machine without a repair.


def note_failure(case: Case, draft: Draft) -> None:
    """Note that a node was lost, or fatally broken, while jobs ran on it."""
    if case.trigger not in (Trigger.LOST, Trigger.FATAL):
        return
    sizes = [len(draft.seen.jobs[id].nodes) for id in draft.overview.running_on.get(case.node, ())]
    if sizes:
        blow = Blow.NODE_FAIL_OF_MANY if max(sizes) > 1 else Blow.NODE_FAIL
        _note(case.hardware or case.node, Mishap(at=draft.now, blow=blow, node=case.node), draft)


def note_exclusions(draft: Draft) -> None:
    """Note the nodes that users exclude by name; each user counts once a day for a node."""
    # the exclude lists of opted-in jobs are partly ours, and say nothing
    listed = {
        (draft.seen.jobs[id].user_id, node)
        for id in draft.ground.jobs.having(Trait.EXCLUDING) - draft.jobs.keys()
        for node in draft.seen.jobs[id].excluded
    }
    for user, node in sorted(listed):
        counted = draft.nodes.of(node).excluded_by
        if user not in counted and node in draft.seen.nodes:
            draft.nodes.note(node, excluded_by=MappingProxyType({**counted, user: draft.now}))
            _note(identity("", NodeName(node), draft), Mishap(at=draft.now, blow=Blow.EXCLUDED, node=node), draft)


def _note(piece: str, mishap: Mishap, draft: Draft) -> None:
    """Remember a mishap of the piece."""
    draft.mishaps[piece] = (*draft.mishaps.get(piece, ()), mishap)[-_KEPT_OF_ONE:]
