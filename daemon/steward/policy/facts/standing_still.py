"""Whether a job's ranks, taken together, do no work, and which of them differs: judged from what all its nodes see.

No word of the job is needed. A rank that may work means that the job may work, except beside one that was stopped, or
where the job's own rules for its output say that it does not go on.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.job_sight import ACTIVE, STILL, Doing, LogState, LogWord, RankGroup, SlowRank, StepSight
from steward.model.text import count_noun, span
from steward.policy.draft import Draft
from steward.policy.traits import Trait

FEWEST_RANKS = 2
"""A job of one rank alone that does nothing may be a notebook, or sleep on purpose: that is no hang by itself."""
_MOST_NAMED = 3
_BATCH = "batch"


class StillKind(Enum):
    """In which way a job stands still."""

    STOPPED = "stopped"
    """Some ranks were stopped by a signal, the others were not."""
    ODD = "odd"
    """Some ranks are blocked, gone or wait, and the others wait for them."""
    SPINS = "spins"
    """All ranks wait in their GPUs' kernels, or for those that do."""
    IDLE = "idle"
    """All ranks use next to nothing."""
    RULE = "rule"
    """A rule that the job brought along for its output says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Still:
    """A job that does no work. `since` is Unix s, `text` a sentence without the job and the time."""

    kind: StillKind
    since: float
    text: str
    usual_s: float
    """The longest time without work after which a rank went on by itself; 0: none is known."""
    ranks: int
    suspects: frozenset[NodeName] = frozenset()
    """The nodes of the ranks that differ; empty: none differ."""
    odd: str = ""
    """The ranks that differ, with their nodes; empty: none differ."""
    may_be_nodes: bool = False
    """Whether their node may be the cause: they were not stopped by a signal, and have not ended."""
    limit_s: float | None = None
    """For how long it may stand still by the job's own rule; None: it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A group of ranks with its node and the time since which it does what it does (Unix s)."""

    node: NodeName
    step: str
    group: RankGroup
    since: float


def jobs_seen_still(draft: Draft) -> frozenset[JobId]:
    """Return the jobs of which an agent sees ranks that do no work or are slow, or what their own rules find."""
    views = (draft.seen.agents[name] for name in draft.ground.agents.having(Trait.STILL))
    return frozenset(step.job for view in views for step in view.sights if step.is_notable)


def seen_working(job: Job, draft: Draft) -> bool:
    """Return whether a rank of the job is seen to work, or to use CPU."""
    return any(one.group.doing in ACTIVE for one in _ranks_of(job, draft))


def works_nowhere_without(node: NodeName, job: Job, draft: Draft) -> bool:
    """Return whether ranks of the job's steps are seen, none of them on this node, and none that may work."""
    seen = [one for one in _ranks_of(job, draft) if one.step != _BATCH]
    return bool(seen) and all(one.node != node and one.group.doing not in ACTIVE for one in seen)


def stillness(job: Job, draft: Draft) -> Still | None:
    """Return how the job stands still; None while it may work, or while that cannot be told."""
    return _by_ranks(job, draft) or _by_rule(job, draft)


def _by_ranks(job: Job, draft: Draft) -> Still | None:
    """Return how the job stands still by what its ranks do."""
    seen = _ranks_of(job, draft)
    of_doing: defaultdict[Doing, list[_Seen]] = defaultdict(list)
    for one in seen:
        of_doing[one.group.doing].append(one)
    if not of_doing.keys() & STILL or Doing.WORKS in of_doing:
        return None
    return _odd(of_doing) or _alike(job, of_doing)


def _by_rule(job: Job, draft: Draft) -> Still | None:
    """Return how the job stands still by its own rules for its output; the rule that has said so for longest counts."""
    found = [
        (max(step.at - word.for_s, job.started or 0.0), step, word)
        for step, word in words_of_rules(job, draft)
        if word.state is LogState.LATE
    ]
    if not found:
        return None
    since, step, word = min(found, key=lambda one: (one[0], one[1].node, one[2].rule))
    text = f"no line came in {output_of(step, word)} for which its own rule '{word.rule}' allows {span(word.limit_s)}"
    return Still(kind=StillKind.RULE, since=since, text=text, usual_s=0.0, ranks=FEWEST_RANKS, limit_s=word.limit_s)


def count_of_ranks(job: Job, draft: Draft) -> int:
    """Return how many ranks of the job are seen."""
    return _count(_ranks_of(job, draft))


def slow_ranks(job: Job, draft: Draft) -> list[tuple[StepSight, SlowRank]]:
    """Return the ranks of the job's present run that their GPUs' hardware slows down, with their steps."""
    return [(step, slow) for step in _steps_of(job, draft) for slow in step.slow]


def output_of(step: StepSight, word: LogWord) -> str:
    """Return whose output the word is about."""
    return "its output" if word.rank is None else f"the output of rank {word.rank} of step {step.step} ({step.node})"


def words_of_rules(job: Job, draft: Draft) -> list[tuple[StepSight, LogWord]]:
    """Return all that is said of the job's present run by its own rules, with the step of each word."""
    return [(step, word) for step in _steps_of(job, draft) for word in step.log]


def _steps_of(job: Job, draft: Draft) -> list[StepSight]:
    """Return the steps of the job's present run, as its nodes see them."""
    views = (draft.seen.agents.get(node) for node in sorted(job.nodes))
    return [step for view in views if view is not None for step in view.sights if _is_of(step, job)]


def _ranks_of(job: Job, draft: Draft) -> list[_Seen]:
    """Return the groups of ranks of the job's present run; a script counts only if it has no steps of its own."""
    steps = _steps_of(job, draft)
    own = [step for step in steps if step.step != _BATCH or sum(group.ranks for group in step.groups) > 1]
    began = job.started or 0.0
    return [
        _Seen(node=step.node, step=step.step, group=group, since=max(step.at - group.for_s, began))
        for step in own or steps
        for group in step.groups
    ]


def _is_of(step: StepSight, job: Job) -> bool:
    return step.job == job.id and step.is_of_run(job.started)


_ODD_FIRST = (Doing.STOPPED, Doing.BLOCKED, Doing.GONE, Doing.WAITS)
"""What odd ranks do, the surest sign first."""


def _odd(of_doing: Mapping[Doing, Sequence[_Seen]]) -> Still | None:
    """Return how the job stands still because some ranks differ; None if none do."""
    for doing in _ODD_FIRST:
        odd = of_doing.get(doing, ())
        others = [one for other, its in of_doing.items() if other is not doing for one in its]
        if not odd or not others or not _differ(doing, odd, others) or not _waits_for(doing, of_doing):
            continue
        named = _named(odd)
        return Still(
            kind=StillKind.STOPPED if doing is Doing.STOPPED else StillKind.ODD,
            since=max(one.since for one in (*odd, *others)),
            text=f"{named} {_WORDS[doing]}{_where(odd)}, and {_shown(others)}; {_BUT[doing]}",
            usual_s=max(one.group.usual_s for one in (*odd, *others)),
            ranks=_count(odd) + _count(others),
            suspects=frozenset(one.node for one in odd),
            odd=f"{named} {_WORDS[doing]}",
            may_be_nodes=doing in (Doing.BLOCKED, Doing.WAITS),
        )
    return None


def _differ(doing: Doing, odd: Sequence[_Seen], others: Sequence[_Seen]) -> bool:
    """Return whether it is these ranks that differ, and not the others: they are fewer, or as many and on one node."""
    few, many = _count(odd), _count(others)
    return doing is Doing.STOPPED or few < many or (few == many and len({one.node for one in odd}) == 1)


def _waits_for(doing: Doing, of_doing: Mapping[Doing, Sequence[_Seen]]) -> bool:
    """Return whether the other ranks can be waiting for those that do this."""
    if doing is Doing.STOPPED:
        return True
    # a rank that waits differs only from ranks that spin
    waiting = {Doing.SPINS} if doing is Doing.WAITS else {Doing.SPINS, Doing.WAITS}
    return not (of_doing.keys() - {doing} - waiting)


def _alike(job: Job, of_doing: Mapping[Doing, Sequence[_Seen]]) -> Still | None:
    """Return how the job stands still with no rank to name; None if it may work."""
    every = [one for its in of_doing.values() for one in its]
    since, usual_s = max(one.since for one in every), max(one.group.usual_s for one in every)
    if of_doing.keys() <= {Doing.SPINS, Doing.WAITS, Doing.GONE, Doing.BLOCKED} and Doing.SPINS in of_doing:
        text = f"{_shown(every)}; no rank can be named: they may wait for each other, or for the network"
        return Still(kind=StillKind.SPINS, since=since, text=text, usual_s=usual_s, ranks=_count(every))
    is_whole = {one.node for one in every} == job.nodes
    if is_whole and of_doing.keys() <= {Doing.WAITS, Doing.GONE, Doing.BLOCKED}:
        text = f"{_shown(every)}; it may wait for input, a file or a person"
        return Still(kind=StillKind.IDLE, since=since, text=text, usual_s=usual_s, ranks=_count(every))
    return None


_WORDS = {
    Doing.STOPPED: "stopped by a signal",
    Doing.BLOCKED: "blocked in the kernel",
    Doing.GONE: "ended",
    Doing.WAITS: "using neither CPU nor GPU",
    Doing.SPINS: "waiting in a kernel of its GPU",
    Doing.BUSY: "using CPU",
    Doing.WORKS: "working",
    Doing.UNKNOWN: "not known",
}
_BUT = {
    Doing.STOPPED: "a person may have stopped it",
    Doing.BLOCKED: "a file system or a device may not answer",
    Doing.GONE: "its program may have ended on purpose",
    Doing.WAITS: "it may wait for something outside of the job",
}
"""What else than a fault of the node explains it."""


def _named(odd: Sequence[_Seen]) -> str:
    """Return the first few odd ranks with their processes and nodes, and how many more there are."""
    firsts = [_rank(one) for one in sorted(odd, key=lambda one: (one.group.rank, one.node))[:_MOST_NAMED]]
    more = _count(odd) - len(firsts)
    return f"{', '.join(firsts)}{f' and {more} more' if more else ''}:"


def _rank(one: _Seen) -> str:
    process = f", process {one.group.pid}" if one.group.pid else ""
    return f"rank {one.group.rank} of step {one.step} ({one.node}{process})"


def _where(odd: Sequence[_Seen]) -> str:
    places = sorted({one.group.waits_in for one in odd if one.group.waits_in})
    return f" (in {places[0]})" if places else ""


def _shown(ranks: Iterable[_Seen]) -> str:
    """Return how many ranks do what."""
    count: Counter[Doing] = Counter()
    for one in ranks:
        count[one.group.doing] += one.group.ranks
    return ", ".join(f"{count_noun(number, 'rank')} {_WORDS[doing]}" for doing, number in count.items())


def _count(ranks: Iterable[_Seen]) -> int:
    return sum(one.group.ranks for one in ranks)


def blamed(still: Still, nodes: Collection[NodeName]) -> NodeName | None:
    """Return the one node of all that differ, if the job has others; None if no node can be told from the rest."""
    return next(iter(still.suspects)) if len(still.suspects) == 1 and len(nodes) > 1 else None
