"""The pages of instance groups and gates, of teams' quotas and of elastic runs: the lists, and one of each."""

from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException

from steward.api.explain_pages import is_number, runs_view
from steward.api.page.charts import SizeBar, size_bars
from steward.api.page.look import Look, Paged, PageRequest
from steward.api.page.nodes import Place, place
from steward.api.quota_pages import quotas_page, team_page
from steward.api.views import natural_sort_key, status_view
from steward.model.elastic import ElasticRun
from steward.model.ids import JobId
from steward.model.partition import Gate
from steward.model.slot import SlotRecord
from steward.model.text import printable
from steward.policy.elastic.picture import stretches_of
from steward.policy.quota.view import quota_view
from steward.views.explain_group import explain_group

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    groups: tuple[Json, ...]
    gates: tuple[Gate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneGroup:
    """One instance group. `lines` are those of `steward explain group`."""

    group: Json
    lines: tuple[str, ...]
    place: Place | None
    slots: Paged[SlotRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    runs: Paged[Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """One elastic run. `sizes` are its nodes over time, `most` is their highest number."""

    run: ElasticRun
    view: Json
    sizes: tuple[SizeBar, ...]
    most: int


def groups(look: Look, _asked: PageRequest) -> Groups:
    """Return the instance groups, oldest first, and the gates of partitions."""
    gates = look.snapshot.memory.gates
    return Groups(groups=_groups(look), gates=tuple(gates[name] for name in sorted(gates)))


def _groups(look: Look) -> tuple[Json, ...]:
    return tuple(status_view(look.source, look.snapshot, look.draft)["groups"])


def group(look: Look, asked: PageRequest) -> OneGroup:
    """Return the page of one instance group. Raises HTTPException if there is no such group."""
    snapshot, memory, name = look.snapshot, look.snapshot.memory, asked.name
    found = next((one for one in _groups(look) if one["name"] == name), None)
    if found is None:
        raise HTTPException(404, f"{printable(name, 100)} is not an instance group of this cluster")
    slots = sorted(
        (slot for slot in memory.slots.values() if slot.group == name), key=lambda slot: natural_sort_key(slot.node)
    )
    known = [slot.node for slot in slots if slot.node in snapshot.seen.nodes]
    return OneGroup(
        group=found,
        lines=explain_group(name, snapshot.seen, look.source.want, memory, look.now),
        place=place(name, known, look) if known else None,
        slots=Paged.of(slots, asked),
    )


def quotas(look: Look, _asked: PageRequest) -> Json:
    """Return the content of `GET /v1/quotas`."""
    return quotas_page(look.source, look.snapshot, quota_view(look.draft))


def quota(look: Look, asked: PageRequest) -> Json:
    """Return the content of `GET /v1/quotas/TEAM`. Raises HTTPException for a team without a quota."""
    return team_page(look.source, look.snapshot, asked.name)


def runs(look: Look, asked: PageRequest) -> Runs:
    """Return the elastic runs: open ones first, then the newest."""
    return Runs(runs=Paged.of(runs_view(look.snapshot, look.source.want.elastic), asked))


def run(look: Look, asked: PageRequest) -> OneRun:
    """Return the page of one elastic run. Raises HTTPException if no such run is remembered."""
    found = look.snapshot.memory.elastic.get(JobId(int(asked.name))) if is_number(asked.name) else None
    if found is None:
        raise HTTPException(404, f"{printable(asked.name, 40)} is not an elastic run that is remembered")
    every = runs_view(look.snapshot, look.source.want.elastic)
    view = next(one for one in every if one["run"] == found.id)
    stretches = stretches_of(found, look.now, None)
    most = max((one.nodes for one in stretches), default=0)
    return OneRun(run=found, view=view, sizes=size_bars(stretches, most), most=most)
