"""The pages of quotas: tables of teams, the preview of a document, and its application."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from steward.api.admission import admit_caller, json_of
from steward.api.auth import Gatekeeper
from steward.api.json11.errors import ApiError
from steward.api.operations.quota_wish import config_shape, quota_wish, scheduler_shape, scheduler_wish
from steward.api.quota_changes import capacity_of, changes, warnings
from steward.api.shapes import JsonAnswer, shape
from steward.api.source import Source
from steward.api.views import draft_of
from steward.model.arn import slurm_cluster_arns
from steward.model.job import Job
from steward.model.order import Refusal, RefusalKind
from steward.model.quota import Resource
from steward.model.quota_order import ApplyQuotas, QuotaWish, SchedulerWish
from steward.model.text import printable, repr_line
from steward.policy.draft import Draft
from steward.policy.orders import carry_out
from steward.policy.orders.quota_document import fingerprint
from steward.policy.quota.flavors import Flavors
from steward.policy.quota.turn import Turn, take_turn
from steward.policy.quota.view import QuotaView, TeamView, quota_view
from steward.views.explain_quota import lines_of
from steward.workflows.snapshot import Snapshot

Json = dict[str, Any]
_JOBS = 200
_STATUS = {RefusalKind.VALIDATION: 400, RefusalKind.NOT_FOUND: 404}
QUOTAS, SCHEDULER = "ComputeQuotas", "ClusterSchedulerConfig"
_SCHEDULER_NAME = "scheduler"
_KNOWN = MappingProxyType({QUOTAS: list, SCHEDULER: dict})
Read = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""Reads the input of an API operation by its model. Raises ApiError."""


def quota_routes(source: Source, gatekeeper: Gatekeeper, read: Read) -> list[Route]:
    """Return the routes by which admins preview and apply a document of quotas."""

    def preview(who: str, said: Json) -> Json:
        snapshot = source.snapshot()
        memory, seen = snapshot.memory, snapshot.seen
        after = carry_out(_order(source, read, snapshot, who, said), memory, seen, source.want).memory
        flavors = Flavors(draft_of(source, snapshot), {quota.team: quota for quota in after.quotas.values()})
        has: dict[Resource, int] = dict(flavors.capacity)
        return {
            "changes": changes(memory, after, source.want),
            "warnings": warnings(after, source.want, capacity_of(after, source.want, has)),
            "based_on": fingerprint(memory.quotas, memory.scheduler),
        }

    def apply(who: str, said: Json) -> Json:
        source.commands.give(_order(source, read, source.snapshot(), who, said))
        return {"done": True, "by": who}

    return [
        Route("/v1/quotas", _proved(gatekeeper, apply), methods=["POST"]),
        Route("/v1/quotas/preview", _proved(gatekeeper, preview), methods=["POST"]),
    ]


def quotas_page(source: Source, snapshot: Snapshot, view: QuotaView) -> Json:
    """Return every team, every resource that quotas name, and warnings about them."""
    memory, accounting = snapshot.memory, snapshot.seen.accounting
    return {
        "at": snapshot.at,
        "cluster_arn": slurm_cluster_arns(memory.cluster, source.want.capacity)[0],
        "trouble": accounting.trouble if accounting else "",
        "limits_frozen": accounting is not None and not accounting.reachable,
        "scheduler": {"name": memory.scheduler.name, **scheduler_shape(memory.scheduler)} if memory.scheduler else None,
        "teams": [_team(each) for each in view.teams],
        "resources": shape(view.resources),
        "warnings": list(view.warnings),
    }


def team_page(source: Source, snapshot: Snapshot, name: str) -> Json:
    """Return one team with its jobs. Raises HTTPException for a team without a quota."""
    draft = draft_of(source, snapshot)
    view = next((each for each in quota_view(draft).teams if each.quota.team == name), None)
    if view is None:
        raise HTTPException(404, f"team {printable(name, 40)} has no quota: `steward quota list` shows the teams")
    return {**_team(view), **_asked(view), "jobs": _jobs(name, draft)}


def _team(view: TeamView) -> Json:
    quota = view.quota
    return {
        "team": quota.team,
        "name": quota.name,
        "id": quota.id,
        "status": quota.status.value,
        "failure": quota.failure,
        "enabled": quota.enabled,
        "strategy": quota.strategy.value,
        "weight": quota.weight,
        "version": quota.version,
        "running": view.running,
        "waiting": view.waiting,
        "resources": shape(view.rows),
        "warnings": list(view.warnings),
    }


def _asked(view: TeamView) -> Json:
    quota = view.quota
    by = {"created": quota.created, "created_by": quota.created_by}
    changed = {"modified": quota.modified, "modified_by": quota.modified_by}
    return {"description": quota.description, "config": config_shape(quota), **by, **changed}


def _jobs(team: str, draft: Draft) -> list[Json]:
    """Return at most `_JOBS` jobs of the team, running ones first, each with the first line of its explanation."""
    mine = [job for job in draft.seen.jobs.values() if job.account == team and (job.is_active or job.is_pending)]
    chosen = sorted(mine, key=lambda job: (not job.is_active, job.id))[:_JOBS]
    turn = take_turn(draft)
    return [
        {
            "id": job.id,
            "shown_id": job.shown_id,
            "name": job.name,
            "state": job.state.value,
            "text": _line(job, turn, draft),
        }
        for job in chosen
    ]


def _line(job: Job, turn: Turn | None, draft: Draft) -> str:
    return next(iter(lines_of(job, turn, draft)), "") if turn is not None else ""


def _order(source: Source, read: Read, snapshot: Snapshot, who: str, said: Json) -> ApplyQuotas:
    arn = slurm_cluster_arns(snapshot.memory.cluster, source.want.capacity)[0]
    return order_of(
        said.get("document"),
        read,
        who=who,
        arn=arn,
        prune=said.get("prune") is True,
        based_on=printable(str(said.get("based_on", "")), 40),
    )


def _proved(gatekeeper: Gatekeeper, page: Callable[[str, Json], Json]) -> Callable[[Request], Any]:
    """Return the route handler of a page for admins who send a JSON object.

    A document that is wrong in itself is answered with 400, one that conflicts with the present state with 409.
    """

    async def serve(request: Request) -> Response:
        who, body = await admit_caller(request, gatekeeper)
        said = json_of(body)
        if not isinstance(said, dict):
            raise HTTPException(400, 'the body is not an object such as {"document": {...}}')
        try:
            return JsonAnswer(await run_in_threadpool(page, who, said))
        except Refusal as refusal:
            raise HTTPException(_STATUS.get(refusal.kind, 409), str(refusal)) from refusal

    return serve


def order_of(document: Any, read: Read, *, who: str, arn: str, prune: bool, based_on: str) -> ApplyQuotas:
    """Return the order to apply a document.

    Each of its entries is an input of CreateComputeQuota, or of CreateClusterSchedulerConfig, without ClusterArn; a
    quota without a Name gets its team's name. Raises Refusal: one line with all errors of an entry.
    """
    found = _outline(document)
    quotas = [_quota(entry, f"{QUOTAS}.{number}", read, arn) for number, entry in enumerate(found.get(QUOTAS, ()), 1)]
    scheduler = _scheduler(found[SCHEDULER], read, arn) if SCHEDULER in found else None
    return ApplyQuotas(who=who, quotas=tuple(quotas), scheduler=scheduler, prune=prune, based_on=based_on)


def _outline(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise _invalid(f"the document is not a table with {QUOTAS} and {SCHEDULER}")
    if unknown := sorted(set(document) - _KNOWN.keys()):
        raise _invalid(f"{repr_line(unknown[0])} is not known at the top: there are {QUOTAS} and {SCHEDULER}")
    for name, kind in _KNOWN.items():
        if name in document and not isinstance(document[name], kind):
            raise _invalid(f"{name} is not a {'list' if kind is list else 'table'}")
    return document


def _quota(entry: Any, place: str, read: Read, arn: str) -> tuple[str, QuotaWish]:
    if not isinstance(entry, dict):
        raise _invalid(f"{place} is not a table")
    target = entry.get("ComputeQuotaTarget")
    team = target.get("TeamName") if isinstance(target, dict) else None
    members = _read("CreateComputeQuota", {"Name": team, **entry}, place, read, arn)
    return members["Name"], quota_wish(members)


def _scheduler(entry: Any, read: Read, arn: str) -> tuple[str, SchedulerWish]:
    members = _read("CreateClusterSchedulerConfig", {"Name": _SCHEDULER_NAME, **entry}, SCHEDULER, read, arn)
    return members["Name"], scheduler_wish(members)


def _read(operation: str, entry: Mapping[str, Any], place: str, read: Read, arn: str) -> dict[str, Any]:
    """Return the input of an operation from an entry of a document, which has no tags: those belong to API calls.

    Raises Refusal.
    """
    for name in ("ClusterArn", "Tags"):
        if name in entry:
            raise _invalid(f"{place}: leave {name} out")
    try:
        return read(operation, {**entry, "ClusterArn": arn})
    except ApiError as error:
        raise _invalid(f"{place}: {error.message}") from error


def _invalid(text: str) -> Refusal:
    return Refusal(RefusalKind.VALIDATION, text)
