"""Serve the pages for login hosts (`head.users_http`): only jobs, only to users who prove their identity by MUNGE.

Users see their own jobs in full. Whether they see other users' jobs is Slurm's rule (PrivateData); admins see all.
"""

from collections.abc import Callable, Collection
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from steward.api.admission import CallerLimits, OwnHosts, path_of
from steward.api.auth import Gatekeeper, Unproved
from steward.api.explain_pages import explained_job, job_now, unknown_job
from steward.api.json11.errors import ApiError
from steward.api.report_pages import history_page, report_page
from steward.api.server import ERRORS, error_handler
from steward.api.shapes import JsonAnswer
from steward.api.source import Source
from steward.api.standstill import TellsStandstill
from steward.api.turns import Turns
from steward.api.views import jobs_view
from steward.model.access import Asker
from steward.model.ids import JobId
from steward.workflows.snapshot import Snapshot

_NOT_HERE = "on login hosts only `explain JOB`, `jobs` and `report` work: run this on the controller"


class UserPages:
    """The handlers of these pages. `hides_jobs` returns whether jobs are private; `limits` are each user's."""

    def __init__(
        self, source: Source, gatekeeper: Gatekeeper, hides_jobs: Callable[[], bool], limits: CallerLimits
    ) -> None:
        self.source, self._gatekeeper, self._hides_jobs, self._limits = source, gatekeeper, hides_jobs, limits

    def jobs(self, request: Request) -> Response:
        only, snapshot = self._only(self._asker(request)), self.source.snapshot()
        owners = {id: _owner(id, snapshot) for id in snapshot.memory.jobs}
        found = jobs_view(snapshot)
        return JsonAnswer([job for job in found if only in (None, owners[job["id"]])])

    def explain(self, request: Request) -> Response:
        asker, word = self._asker(request), str(request.path_params["job"])
        id, snapshot = job_now(word, self.source, self.source.snapshot())
        owner = _owner(id, snapshot)
        if self._only(asker) not in (None, owner):
            raise unknown_job(word)
        private = asker.is_admin or asker.uid == owner
        return JsonAnswer(explained_job(id, self.source, snapshot, private=private))

    def history(self, request: Request) -> Response:
        only = self._only(self._asker(request))
        return JsonAnswer(history_page(self.source, str(request.path_params["job"]), only))

    def report(self, request: Request) -> Response:
        return JsonAnswer(report_page(self.source, request.query_params, self._only(self._asker(request))))

    def elsewhere(self, _request: Request) -> Response:
        raise HTTPException(404, _NOT_HERE)

    def _asker(self, request: Request) -> Asker:
        proof = request.headers.get("authorization", "")
        asker = self._gatekeeper.asker(proof, request.method, path_of(request))
        self._limits.take(str(asker.uid), read=True)
        return asker

    def _only(self, asker: Asker) -> int | None:
        """Return the one user whose jobs the caller may see; None if the caller may see all jobs."""
        return None if asker.is_admin or not self._hides_jobs() else asker.uid


def _owner(id: JobId, snapshot: Snapshot) -> int | None:
    """Return the owner of a job, by Slurm's record or else by Steward's; None if the job is unknown."""
    known, mem = snapshot.seen.jobs.get(id), snapshot.memory.jobs.get(id)
    if known is not None:
        return known.user_id
    return mem.uid if mem is not None else None


def build_users(pages: UserPages, hosts: Collection[str], passes_on: Middleware | None = None) -> Starlette:
    """Return the application; `passes_on` as in `server.build`."""
    # Its turns are its own, so that many users cannot delay the pages of the controller.
    reads, heavy = Turns(at_once=2, waiting=64), Turns(at_once=1, waiting=8)
    routes = [
        reads.route("/v1/jobs", pages.jobs),
        reads.route("/v1/explain/job/{job}", pages.explain),
        heavy.route("/v1/jobs/{job}/history", pages.history),
        heavy.route("/v1/report", pages.report),
        Route("/{path:path}", pages.elsewhere, methods=["GET", "POST"]),
    ]
    prove = error_handler(401, {"WWW-Authenticate": "MUNGE"})  # after it a client proves who its user is
    errors: dict[Any, Callable[[Request, Exception], Response]] = {
        **ERRORS,
        Unproved: prove,
        ApiError: error_handler(429),
    }
    passing = [passes_on] if passes_on is not None else []
    around = [Middleware(OwnHosts, names=hosts), *passing, Middleware(TellsStandstill, source=pages.source)]
    return Starlette(routes=routes, exception_handlers=errors, middleware=around)
