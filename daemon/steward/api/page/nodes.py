"""The pages of nodes: the grid of a place, the list with its filters, and one node."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from steward.api.checks import node_checks_view
from steward.api.explain_pages import known_node
from steward.api.page.charts import ChartLane, day_of_node
from steward.api.page.look import Look, Paged, PageRequest
from steward.api.page.words import SIGNS, URGENCY, css
from steward.api.user_names import user_name
from steward.api.views import natural_sort_key, views_of
from steward.model.case import Case
from steward.model.events import Event
from steward.model.ids import JobId, NodeName
from steward.model.job import Job
from steward.model.ledger import Run
from steward.model.node import Node
from steward.model.node_names import fold, unfold
from steward.model.text import harmless, verdict_label
from steward.ports import PortError
from steward.views.explain import node_lines
from steward.views.node_verdict import NodeVerdict, Word, node_verdict

Json = dict[str, Any]
WRONG = frozenset({Word.LOST, Word.DEGRADED, Word.HELD, Word.SUSPECT, Word.REPORT_ONLY})
"""The verdicts that need a person's attention."""
_ALL_NAMED, _NAMED = 64, 60
_NONE = ""
_PLAIN = {word: f'<i class="{css(word.value)}">{SIGNS[word.value]}</i>' for word in Word} | {Word.FINE: "<i></i>"}
_BUSY = '<i class="busy"></i>'
_EVENTS = 25
_MOST_LISTED = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Legend:
    word: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The grid of the nodes of one group, or of the same partitions.

    `names` lists the nodes of the cells in Slurm's notation, in the order of the cells; empty if such a list would
    change their order.
    """

    title: str
    total: int
    odd: int
    cells: Markup
    names: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node in a list. `since` is in Unix seconds."""

    name: str
    state: str
    reason: str
    word: str
    since: float | None
    evidence: str
    next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesPage:
    nodes: Paged[NodeRow]
    legend: tuple[Legend, ...]
    places: tuple[str, ...]
    asked: PageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOnNode:
    id: JobId
    shown_id: str
    name: str
    user: str
    state: str
    began: float | None
    ended: float | None
    is_ours: bool
    """Whether the job opted in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneNode:
    """One node.

    `checks` failed or are unknown, the failed ones first; `quiet` passed; `idle` did not run or do not apply.
    """

    name: NodeName
    view: Json | None
    said: NodeVerdict
    place: str
    lanes: tuple[ChartLane, ...]
    checks: tuple[Json, ...]
    quiet: tuple[Json, ...]
    idle: tuple[Json, ...]
    reported: float | None
    jobs: tuple[JobOnNode, ...]
    more_jobs: int
    cases: tuple[Case, ...]
    lines: tuple[str, ...]
    events: tuple[Event, ...]


def legend(look: Look) -> tuple[Legend, ...]:
    counts: dict[str, int] = {}
    for said in look.verdicts.values():
        counts[said.word.value] = counts.get(said.word.value, 0) + 1
    return tuple(Legend(word=word, count=counts[word]) for word in SIGNS if word in counts)


def place(title: str, names: Iterable[NodeName], look: Look) -> Place:
    """Return the grid of these nodes, one cell each; a large place names only the first nodes not fine."""
    order, folded = _in_order(frozenset(names))
    verdicts, nodes = look.verdicts, look.snapshot.seen.nodes
    all_named, left, odd = len(order) <= _ALL_NAMED, _NAMED, 0
    cells: list[str] = []
    for name in order:
        word = verdicts[name].word
        is_fine = word is Word.FINE
        odd += not is_fine
        if all_named or (not is_fine and left > 0):
            left -= 1
            cells.append(_named(name, word, nodes[name]))
        elif is_fine and nodes[name].is_busy:
            cells.append(_BUSY)
        else:
            cells.append(_PLAIN[word])
    return Place(title=title, total=len(order), odd=odd, cells=Markup("".join(cells)), names=folded)


@lru_cache(maxsize=64)
def _in_order(names: frozenset[NodeName]) -> tuple[tuple[NodeName, ...], str]:
    """Return the names in the order of their folded list, and that list, which the page's script unfolds again.

    If the folded list does not unfold to the same names, they are in natural order and the list is empty.
    """
    folded = fold(names)
    try:
        order = tuple(map(NodeName, unfold(folded)))
    except ValueError:
        order = ()
    if len(order) == len(names) and names.issuperset(order):
        return order, folded
    return tuple(sorted(names, key=natural_sort_key)), _NONE


def _named(name: NodeName, word: Word, node: Node) -> str:
    shown = harmless(name)
    busy = " busy" if word is Word.FINE and node.is_busy else ""
    text = '<a id="cell-{}" class="cell {}{}" href="/node/{}"><b>{}</b> {}<span class="hidden">, {}</span></a>'
    sign, said = SIGNS[word.value], verdict_label(word.value)
    return Markup(text).format(shown, css(word.value), busy, quote(name, safe=""), sign, shown, said)


def nodes(look: Look, asked: PageRequest) -> NodesPage:
    """Return the nodes that match, the most urgent first."""
    found = sorted(_chosen(look, asked), key=lambda name: (_urgency(name, look), natural_sort_key(name)))
    return NodesPage(
        nodes=Paged.of(found, asked).map(lambda name: _row(name, look)),
        legend=legend(look),
        places=tuple(look.places),
        asked=asked,
    )


def _urgency(name: NodeName, look: Look) -> int:
    return URGENCY[look.verdicts[name].word]


def _chosen(look: Look, asked: PageRequest) -> list[NodeName]:
    text, state, check, user = (asked.word(word) for word in ("q", "state", "check", "user"))
    found: Iterable[NodeName] = look.places.get(asked.word("place"), ()) if asked.word("place") else look.verdicts
    if text:
        listed = _listed(text)
        found = [name for name in found if name in listed or text.lower() in name.lower()]
    if state:
        words = {word for word in Word if word.value == state} if state != "wrong" else WRONG
        found = [name for name in found if look.verdicts[name].word in words]
    if check:
        agents = look.snapshot.seen.agents
        found = [n for n in found if n in agents and any(f.check == check and f.is_bad for f in agents[n].findings)]
    if user:
        found = [name for name in found if any(user_name(job.user_id) == user for job in look.jobs_on.get(name, ()))]
    return list(found)


def _listed(text: str) -> frozenset[str]:
    """Return the nodes of a list such as `n[1-3],n7`; empty if the text is no such list or too long a one."""
    try:
        return frozenset(unfold(text, _MOST_LISTED))
    except ValueError:
        return frozenset()


def _row(name: NodeName, look: Look) -> NodeRow:
    node, said = look.snapshot.seen.nodes[name], look.verdicts[name]
    return NodeRow(
        name=name,
        state="+".join([node.base.value, *sorted(node.flags)]),
        reason=node.reason.text if node.reason else "",
        word=said.word.value,
        since=said.since,
        evidence=said.evidence,
        next=said.next,
    )


def rows(names: Iterable[NodeName], look: Look) -> tuple[NodeRow, ...]:
    return tuple(_row(name, look) for name in names)


def node(look: Look, asked: PageRequest) -> OneNode:
    """Return the page of one node. Raises HTTPException if the cluster has no such node."""
    source, snapshot, memory = look.source, look.snapshot, look.snapshot.memory
    name = known_node(asked.name, snapshot)
    told = tuple(_events(look, name))
    cases = [case for case in memory.cases.values() if case.node == name]
    runs = [run for runs in memory.ledger.values() for run in runs if name in run.nodes]
    checks = node_checks_view(source.checks, name, snapshot)
    view = snapshot.seen.agents.get(name)
    jobs = _jobs(name, runs, look)
    return OneNode(
        name=name,
        view=views_of([name], look.verdicts, source, snapshot)[0] if name in snapshot.seen.nodes else None,
        said=look.verdicts.get(name) or node_verdict(name, look.draft),
        place=next((title for title, names in look.places.items() if name in names), ""),
        lanes=day_of_node(cases, runs, told, look.now),
        checks=tuple(_loud(checks)),
        quiet=tuple(one for one in checks if one["outcome"] == "passed"),
        idle=tuple(one for one in checks if one["outcome"] in ("skipped", None)),
        reported=view.reported_at if view else None,
        jobs=jobs[:_EVENTS],
        more_jobs=max(len(jobs) - _EVENTS, 0),
        cases=tuple(sorted(cases, key=lambda case: -case.opened)),
        lines=node_lines(name, memory, look.draft),
        events=told[:_EVENTS],
    )


_OUTCOMES: Mapping[str, int] = MappingProxyType({"failed": 0, "unknown": 1})


def _loud(checks: Iterable[Json]) -> list[Json]:
    return sorted((one for one in checks if one["outcome"] in _OUTCOMES), key=lambda one: _OUTCOMES[one["outcome"]])


def _events(look: Look, name: NodeName) -> list[Event]:
    """Return the events of a node, the newest first; none if the store cannot be read."""
    try:
        return [event for _, event in reversed(look.source.store.events(node=name, limit=200))]
    except PortError:
        return []


def _jobs(name: NodeName, runs: Iterable[Run], look: Look) -> tuple[JobOnNode, ...]:
    """Return the node's active jobs, then its past runs of jobs that opted in, the newest of each first."""
    here = look.jobs_on.get(name, ())
    ids = {job.id for job in here}
    past = sorted((run for run in runs if run.job not in ids), key=lambda run: -run.started)
    return (*(_now(job, look) for job in here), *(_past(run) for run in past))


def _now(job: Job, look: Look) -> JobOnNode:
    return JobOnNode(
        id=job.id,
        shown_id=job.shown_id,
        name=job.name,
        user=user_name(job.user_id),
        state=job.state.value,
        began=job.started,
        ended=None,
        is_ours=job.id in look.snapshot.memory.jobs,
    )


def _past(run: Run) -> JobOnNode:
    how = run.end_text or (run.ending.value if run.ending else "")
    return JobOnNode(
        id=run.job,
        shown_id=run.shown_id,
        name=run.name,
        user=user_name(run.uid),
        state=how,
        began=run.started,
        ended=run.ended,
        is_ours=True,
    )
