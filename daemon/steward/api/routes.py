"""Define the routes of the HTTP API as data: the server, docs/api.md and the OpenAPI document are made from them.

A new read is a row here with its view; `Client.object` and `Client.array` fetch it. `python -m steward.api.routes`
prints the list of docs/api.md.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from textwrap import fill
from typing import Any

from steward.api.channels import channels_view
from steward.api.checks import checks_page, deep_page, deeps_view, lemons_view, trials_view
from steward.api.explain_pages import explained_group, explained_node, runs_view
from steward.api.metrics import FIGURES
from steward.api.quota_pages import quotas_page, team_page
from steward.api.report_pages import history_page, report_page
from steward.api.source import Source
from steward.api.views import breakers_view, cases_view, draft_of, jobs_view, nodes_view, plan_view, status_view
from steward.policy.draft import Draft
from steward.policy.quota.view import quota_view
from steward.workflows.snapshot import Snapshot

Json = dict[str, Any]
OPENAPI = "/v1/openapi.json"
_WIDTH = 140
_IN_PATH = re.compile(r"{(\w+)}")


@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """A request for a page, with the data to answer it from."""

    source: Source
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def snapshot(self) -> Snapshot:
        """Return the snapshot of the last cycle. Raises Retryable before the first one has ended."""
        return self.source.snapshot()

    @cached_property
    def now(self) -> float:
        return self.source.clock.now()

    @property
    def draft(self) -> Draft:
        return draft_of(self.source, self.snapshot)


View = Callable[[ReadRequest], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRoute:
    """A route and its documentation.

    `query` and `body` are the parameters with their meaning. `answer` is the JSON type of the answer; empty means text.
    `view` makes the answer in a thread, and raises HTTPException; None if the server has a handler of its own. Heavy
    answers (`is_heavy`) are made one at a time. Reads are for all users of this machine, changes for admins.
    """

    method: str
    path: str
    text: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)
    answer: str = "object"
    view: View | None = None
    is_heavy: bool = False

    @property
    def id(self) -> str:
        """The OpenAPI operation id, such as `getJobsHistory`."""
        words = re.findall(r"[a-z]+", _IN_PATH.sub("", self.path).removeprefix("/v1"))
        one = "One" if self.path.endswith("}") and "explain" not in words else ""
        return self.method.lower() + "".join(word.capitalize() for word in words) + one


def _read(
    path: str,
    text: str,
    view: View | None,
    *,
    query: Mapping[str, str] | None = None,
    answer: str = "object",
    is_heavy: bool = False,
) -> ApiRoute:
    return ApiRoute(method="GET", path=path, text=text, view=view, query=query or {}, answer=answer, is_heavy=is_heavy)


def _change(path: str, text: str, **body: str) -> ApiRoute:
    return ApiRoute(method="POST", path=path, text=text, body=body)


ROUTES = (
    _read(
        "/v1/status",
        "nodes by state, agents, open cases, those that wait for approval (`cases_waiting`), incidents, breakers, "
        "instance groups, `paused`, freshness of the picture, `heads` (null for a head alone)",
        lambda at: status_view(at.source, at.snapshot, at.draft),
    ),
    _read(
        "/v1/nodes",
        "every node: `verdict`, `evidence`, `since` (Unix seconds), `next`, agent (connected, late, instance, boot, "
        "version, bad findings), open case",
        lambda at: nodes_view(at.source, at.snapshot),
        answer="array",
    ),
    _read(
        "/v1/cases",
        "all remembered repairs, open ones first: step, why, times of fault, detection, mark, replacement, return "
        "(Unix seconds)",
        lambda at: cases_view(at.snapshot),
        answer="array",
    ),
    _change(
        "/v1/cases/approve",
        'approves repairs that wait for it (`repair.mode = "ask"`); 409, and none approved, where one does not wait',
        cases="cases or nodes, `c5,n[17-19]`",
    ),
    _read(
        "/v1/jobs",
        "jobs that opted in: number (`shown_id`: as squeue shows it), mode, resumes used, excluded nodes, every "
        "decision and why",
        lambda at: jobs_view(at.snapshot),
        answer="array",
    ),
    _read(
        "/v1/jobs/{job}/history",
        "every run of a job (also `ARRAY_INDEX`), oldest first",
        lambda at: history_page(at.source, at.path["job"]),
        answer="array",
        is_heavy=True,
    ),
    _read(
        "/v1/report",
        "where jobs' time went and what incidents took ([report.md](report.md))",
        lambda at: report_page(at.source, at.query),
        query={
            "job": "its number, also `ARRAY_INDEX`",
            "since": "Unix seconds",
            "month": "`2026-11`",
            "user": "of one user",
            "partition": "of one partition",
        },
        is_heavy=True,
    ),
    _read(
        "/v1/events",
        "events, oldest first; without `after` the newest `limit`",
        None,
        query={
            "after": "the `seq` of the last one that is known",
            "limit": "so many at most",
            "wait_s": "up to 30: waits for the first",
            "node": "about a node",
            "job": "about a job, also `ARRAY_INDEX`",
            "kind": "how it begins",
            "level": "at least",
            "since": "Unix seconds",
        },
        answer="array",
    ),
    _read(
        "/v1/explain/node/{name}",
        "`lines` for people, the last `events`",
        lambda at: explained_node(at.path["name"], at.source, at.snapshot),
    ),
    _read(
        "/v1/explain/job/{job}",
        "the same of a job (also `ARRAY_INDEX`); what it printed only with a MUNGE credential of its user or an admin",
        None,
    ),
    _read(
        "/v1/explain/group/{name}",
        "the same of an instance group",
        lambda at: explained_group(at.path["name"], at.source, at.snapshot),
        is_heavy=True,
    ),
    _read(
        "/v1/checks",
        "every check: title, source, period, limits (`numbers`, with `by`), mode (`mode_by`), cost, results (over the "
        "cluster or on that node)",
        lambda at: checks_page(at.source.checks, at.query.get("node", ""), at.snapshot),
        query={"node": "on one node"},
        answer="array",
    ),
    _read(
        "/v1/checks/trials",
        "every version of a check that may change: on trial, armed or refused, with the arithmetic",
        lambda at: trials_view(at.snapshot),
        answer="array",
    ),
    _change("/v1/checks/arm", "lets a check take nodes out, whatever its trial says", check="its id"),
    _change("/v1/checks/disarm", "keeps a check from taking nodes out", check="its id"),
    _read(
        "/v1/checks/deep",
        "deep checks: kinds, nodes, state, results",
        lambda at: deeps_view(at.snapshot),
        answer="array",
    ),
    _read(
        "/v1/checks/deep/{id}",
        "one deep check, with what it measured",
        lambda at: deep_page(at.path["id"], at.snapshot),
    ),
    _change(
        "/v1/checks/deep",
        "asks for deep checks; `runs` are their ids",
        nodes="`n[1-8]`",
        kinds="with commas; empty: all kinds",
    ),
    _read(
        "/v1/lemons",
        "machines that fail again and again, with the arithmetic",
        lambda at: lemons_view(at.snapshot, at.now),
        answer="array",
    ),
    _read(
        "/v1/breakers",
        "tripped breakers: scope, since when, why, when a first repair is let through, and which",
        lambda at: breakers_view(at.draft),
        answer="array",
    ),
    _change("/v1/breakers/reset", "closes a breaker; 409 when it is not tripped", scope="of one; empty: all"),
    _change(
        "/v1/pause",
        "no action on nodes until resumed (jobs are still resumed); survives restarts",
        why="a reason, for people",
    ),
    _change(
        "/v1/head/handover",
        "lets another head lead: `to` names those that could take over now; 409 if there is none",
    ),
    _change("/v1/resume-actions", "acts again; tripped breakers are reset"),
    _read(
        "/v1/plan",
        "what would be done now if nothing were paused, reported only, or already asked for",
        lambda at: plan_view(at.source, at.snapshot, at.now),
        is_heavy=True,
    ),
    _read(
        "/v1/doctor",
        "`topic`, `health` (`ok`, `warn`, `bad`), `text`, `remedy` of each thing looked at",
        None,
        answer="array",
    ),
    _read(
        "/v1/elastic",
        "elastic runs: size, phase, replica jobs, each change of size, its cause and duration",
        lambda at: runs_view(at.snapshot, at.source.want.elastic),
        answer="array",
    ),
    _change(
        "/v1/elastic",
        "another size at most, or a pause of growth",
        run="its job's number",
        size="`0`: any of its sizes",
        paused="`true` or `false`",
    ),
    _read(
        "/v1/quotas",
        "what teams own, use, lend and have borrowed, by resource, with their share",
        lambda at: quotas_page(at.source, at.snapshot, quota_view(at.draft)),
    ),
    _read(
        "/v1/quotas/{team}",
        "the same of one team, and what each of its jobs waits for",
        lambda at: team_page(at.source, at.snapshot, at.path["team"]),
    ),
    _change(
        "/v1/quotas/preview",
        "what a document of quotas would change (`changes`), `warnings`, and `based_on` (the present state)",
        document="an object ([quotas.md](quotas.md))",
        prune="`true`: quotas that it does not name go",
    ),
    _change(
        "/v1/quotas",
        "carries it out, all or nothing; 409 when a quota has changed since `based_on`",
        document="an object",
        prune="as in the preview",
        based_on="of the preview",
    ),
    _read(
        "/v1/notify",
        "notification channels: filters, waiting messages, when one was sent last, the last error",
        lambda at: channels_view(at.source.notify),
        answer="array",
    ),
    _change(
        "/v1/notify/test",
        "sends a test message; `channels` says what went wrong",
        channel="of one; empty: all",
    ),
    _read(OPENAPI, "this list as an OpenAPI 3.1 document", lambda at: document(at.source.version)),
    _read(FIGURES, "figures for Prometheus", lambda at: at.source.figures(), answer=""),
)


def listed(routes: Iterable[ApiRoute] = ROUTES) -> str:
    """Return the list of docs/api.md."""
    lines = (
        f"- `{one.method} {one.path}`: {one.text}{_said('query', one.query)}{_said('body', one.body)}" for one in routes
    )
    return "".join(fill(line, _WIDTH, subsequent_indent="  ", break_on_hyphens=False) + "\n" for line in lines)


def _said(what: str, values: Mapping[str, str]) -> str:
    return f"; {what}: {', '.join(f'`{name}` ({text})' for name, text in values.items())}" if values else ""


def document(version: str, routes: Iterable[ApiRoute] = ROUTES) -> Json:
    """Return the OpenAPI document."""
    paths: dict[str, Json] = {}
    for one in routes:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Steward's head", "version": version, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "securitySchemes": {
                "munge": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "MUNGE CREDENTIAL over `METHOD PATH SHA256-OF-BODY`, good for one request",
                }
            },
            "schemas": {"Error": {"type": "object", "properties": {"error": {"type": "string"}}}},
        },
    }


def _operation(one: ApiRoute) -> Json:
    kind = "application/json" if one.answer else "text/plain"
    schema = {"type": one.answer, **({"items": {"type": "object"}} if one.answer == "array" else {})}
    error = {
        "description": "why not",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    found: Json = {
        "operationId": one.id,
        "summary": one.text,
        "parameters": [*_parameters(one)],
        "responses": {
            "200": {"description": "done", "content": {kind: {"schema": schema if one.answer else {"type": "string"}}}},
            "default": error,
        },
    }
    if one.method == "POST":
        words = {name: {"description": text} for name, text in one.body.items()}
        body = {"schema": {"type": "object", "properties": words}}
        found |= {"requestBody": {"content": {"application/json": body}}, "security": [{"munge": []}]}
    return found


def _parameters(one: ApiRoute) -> Iterator[Json]:
    for name in _IN_PATH.findall(one.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    for name, text in one.query.items():
        yield {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}


if __name__ == "__main__":
    print(listed(), end="")
