"""The head's HTTP API for Python. Answers are the JSON documents of docs/api.md. An error is one clear line."""

import http.client
import json
import selectors
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from steward.model.access import STANDSTILL_HEADER, for_cluster, payload
from steward.model.events import LEVELS as LEVELS
from steward.model.events import EventFilter as EventFilter
from steward.model.port_error import PortError
from steward.model.text import cause

Json = dict[str, Any]

_CONNECT_S = 2.0
_READ_S = 8.0
"""The slowest page of a head of 10,000 nodes takes 0.3 s (docs/performance.md); the rest is for requests before it."""
_WORK_S = 30.0
"""The time limit of changes, and of pages that the head makes one at a time."""
_EXAMINE_S = 120.0
_SILENT_S = 3.0
"""After this time the caller is told that no answer has come yet."""
_FOLLOW_S = 20


class HeadError(Exception):
    """An error of a request, which the head refused or could not carry out."""


class OperationError(HeadError):
    """A refused operation of the AWS endpoint. `code` is AWS's error code; the text begins with it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class NotThere(HeadError):
    """A name that the head does not know."""


class Unreachable(HeadError):
    """A head that does not answer, is not ready or is too busy (503). The same call may work later.

    The text says which address was tried and what to do.
    """


@dataclass(frozen=True, slots=True)
class Ears:
    """The callbacks for news that is not part of an answer.

    `standstill` gets why the head decides nothing now (`since`, `why`, `at`), unless the page itself has that field.
    `silence` gets the message that no answer has come for seconds.
    """

    standstill: Callable[[Json], None] = lambda said: None
    silence: Callable[[str], None] = lambda text: None


class Client:
    """A client without state.

    `prove` makes a MUNGE credential over a payload; changes, operations and, on login hosts, all pages need it. `ca`:
    PEM file that certifies the head (empty: well-known authorities). `cluster`: the only cluster whose head accepts the
    proofs (empty: not known). `patience` multiplies the time limits of answers.
    """

    def __init__(
        self,
        url: str,
        prove: Callable[[bytes], str] | None = None,
        ca: str = "",
        *,
        cluster: str = "",
        ears: Ears = Ears(),
        patience: float = 1.0,
    ) -> None:
        self._ears, self._patience = ears, patience
        self._url, self._prove, self._cluster, self._ca = url.rstrip("/"), prove, cluster, ca

    def object(self, path: str, *, read_s: float = _READ_S, is_proved: bool = False) -> Json:
        """Return the JSON object at `path`. `is_proved`: name the caller to the head, if MUNGE can prove it."""
        answer = self._ask("GET", path, b"", self._proof_header(unquote(path)) if is_proved else {}, read_s)
        if not isinstance(answer, dict):
            raise HeadError(f"{self._url}{path} answered with something other than an object: is it a Steward head?")
        return answer

    def array(self, path: str, *, read_s: float = _READ_S, wait_s: float = 0.0) -> list[Json]:
        """Return the JSON list at `path`; the head may delay its answer by up to `wait_s`."""
        answer = self._ask("GET", path, b"", {}, read_s, wait_s)
        if not isinstance(answer, list):
            raise HeadError(f"{self._url}{path} answered with something other than a list: is it a Steward head?")
        return answer

    def job_history(self, job: int | str) -> list[Json]:
        """Return every run of a job, or of a task of an array (`12_3`), oldest first."""
        return self.array(f"/v1/jobs/{quote(str(job), safe='+')}/history", read_s=_WORK_S)

    def report(
        self, *, job: int | str = "", since: float = 0.0, month: str = "", user: str = "", partition: str = ""
    ) -> Json:
        """Return the report on where jobs' time went.

        It covers one job, or all jobs with time since `since` (Unix s) or in a month (`2026-11`).
        """
        said = {"job": str(job), "since": f"{since:.3f}", "month": month, "user": user, "partition": partition}
        return self.object("/v1/report?" + urlencode(said), read_s=_EXAMINE_S)

    def plan(self) -> Json:
        return self.object("/v1/plan", read_s=_WORK_S)

    def doctor(self) -> list[Json]:
        return self.array("/v1/doctor", read_s=_EXAMINE_S)

    def explain_node(self, node: str) -> Json:
        return self.object(f"/v1/explain/node/{quote(node, safe='')}")

    def explain_job(self, job: int | str) -> Json:
        """Return the explanation of a job, or of a task of an array (`12_3`).

        It quotes the job's output only for the job's user and for admins, as proved by MUNGE.
        """
        return self.object(f"/v1/explain/job/{quote(str(job), safe='+')}", is_proved=True)

    def explain_group(self, group: str) -> Json:
        return self.object(f"/v1/explain/group/{quote(group, safe='')}")

    def events(
        self, *, after: int = 0, limit: int = 100, wait_s: float = 0, wanted: EventFilter | None = None
    ) -> list[Json]:
        """Return events, oldest first; without `after`, the newest `limit` ones. Wait up to `wait_s` for the first."""
        query = f"/v1/events?after={after}&limit={limit}&wait_s={wait_s:g}{wanted.query() if wanted else ''}"
        return self.array(query, wait_s=wait_s)

    def follow(
        self, limit: int, wanted: EventFilter | None = None, lost: Callable[[HeadError], None] = lambda error: None
    ) -> Iterator[Json]:
        """Yield the newest `limit` events, then each one as it happens, for ever.

        While the head is away, the client tries again, and afterwards yields the events of that time, too. `lost` is
        called with the error of each failed try, and may sleep. An error of the first read is raised.
        """
        newest = self.events(limit=1)
        after = int(newest[-1]["seq"]) if newest else 0
        newest = [event for event in self.events(limit=limit, wanted=wanted) if int(event["seq"]) <= after]
        yield from newest
        task = wanted.job if wanted and "_" in wanted.job else ""
        while True:
            task = str(newest[-1]["job"]) if task and newest else task  # its job id: Slurm may forget the task
            try:
                events = self.events(after=after, limit=1000, wait_s=_FOLLOW_S, wanted=EventFilter(job=task))
            except HeadError as error:
                lost(error)
                continue
            events = newest = [event for event in events if int(event["seq"]) > after]
            yield from (event for event in events if wanted is None or wanted.takes(event))
            after = max([after, *(int(event["seq"]) for event in events)])

    def quota(self, team: str) -> Json:
        """Return a team's quota, with the team's jobs."""
        return self.object(f"/v1/quotas/{quote(team, safe='')}")

    def preview_quotas(self, document: Json, *, prune: bool) -> Json:
        """Return the changes that a document of quotas would make, and warnings about it."""
        return self._post("/v1/quotas/preview", {"document": document, "prune": prune})

    def apply_quotas(self, document: Json, *, prune: bool, based_on: str) -> Json:
        """Apply a document of quotas, all or nothing.

        The head refuses it if a quota was changed since the preview that gave `based_on`.
        """
        return self._post("/v1/quotas", {"document": document, "prune": prune, "based_on": based_on})

    def pause(self, why: str) -> Json:
        """Stop all actions of the head until `resume_actions`."""
        return self._post("/v1/pause", {"why": why})

    def hand_over(self) -> Json:
        """Let another head lead."""
        return self._post("/v1/head/handover", {})

    def resume_actions(self) -> Json:
        """Let the head act again, and reset tripped breakers."""
        return self._post("/v1/resume-actions", {})

    def approve(self, cases: str) -> Json:
        """Approve repairs that wait for approval, by case ids or node names: `c17,n[2-4]`."""
        return self._post("/v1/cases/approve", {"cases": cases})

    def reset_breakers(self, scope: str = "") -> Json:
        """Reset one breaker, or all tripped ones."""
        return self._post("/v1/breakers/reset", {"scope": scope})

    def checks(self, node: str = "") -> list[Json]:
        """Return every check with its results over the cluster, or the state of each check on one node."""
        return self.array(f"/v1/checks?node={quote(node, safe='')}" if node else "/v1/checks")

    def arm_check(self, check: str, *, armed: bool) -> Json:
        """Arm or disarm a new or changed check; an armed one takes nodes out, whatever its trial shows."""
        return self._post(f"/v1/checks/{'arm' if armed else 'disarm'}", {"check": check})

    def check_deep(self, nodes: str, kinds: Iterable[str]) -> Json:
        """Ask for a deep check of a host list (`n[1-8]`); `runs` of the answer are its ids. No kind: all kinds."""
        return self._post("/v1/checks/deep", {"nodes": nodes, "kinds": ",".join(kinds)})

    def test_channels(self, channel: str = "") -> Json:
        """Send a test message by one channel, or by all; `channels` of the answer says what went wrong."""
        return self._post("/v1/notify/test", {"channel": channel})

    def change_run(self, run: int, words: Mapping[str, str]) -> Json:
        """Change an elastic run: `size` (nodes; empty: as large as it may be) and `paused` (`true`, `false`)."""
        return self._post("/v1/elastic", {"run": str(run), **words})

    def deep(self, id: str) -> Json:
        return self.object(f"/v1/checks/deep/{quote(id, safe='')}")

    def operate(self, operation: str, members: Json) -> Json:
        """Call one operation of the AWS endpoint, such as DescribeCluster. Raises OperationError if it is refused."""
        target, body = f"SageMaker.{operation}", json.dumps(members).encode()
        path = urlsplit(self._url + "/").path
        proof = self._proof(payload("POST", path, body, target))
        headers = {"Authorization": proof, "X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.1"}
        answer = self._ask("POST", "/", body, headers, _WORK_S)
        return answer if isinstance(answer, dict) else {}

    def _post(self, path: str, document: Json) -> Json:
        body = json.dumps(document).encode()
        proof = self._proof(payload("POST", urlsplit(self._url + path).path, body))
        answer = self._ask("POST", path, body, {"Authorization": proof}, _WORK_S)
        return answer if isinstance(answer, dict) else {}

    def _proof_header(self, path: str) -> dict[str, str]:
        """Return the header that proves the caller's identity; empty if MUNGE cannot prove it."""
        try:
            return {"Authorization": self._proof(payload("GET", urlsplit(self._url + path).path, b""))}
        except (HeadError, PortError):
            return {}

    def _proof(self, carries: bytes) -> str:
        if self._prove is None:
            raise HeadError("no MUNGE on this machine: run this where munged runs, as root or SlurmUser")
        return f"MUNGE {self._prove(for_cluster(carries, self._cluster))}"

    def _ask(
        self, method: str, path: str, body: bytes, headers: dict[str, str], read_s: float, wait_s: float = 0.0
    ) -> Any:
        """Return the answer to one request, sent on its own connection and through no proxy.

        The head may delay its answer by up to `wait_s`. A GET that is refused without proof (401) is sent again.
        """
        try:
            with closing(self._connection()) as connection:
                connection.connect()
                connection.sock.settimeout(read_s * self._patience + wait_s)
                connection.request(
                    method, urlsplit(self._url + path)._replace(scheme="", netloc="").geturl(), body or None, headers
                )
                self._await_answer(connection.sock, read_s, wait_s)
                answer = connection.getresponse()
                status, content, standstill = answer.status, answer.read(), answer.headers.get(STANDSTILL_HEADER, "")
        except TimeoutError as error:
            raise Unreachable(f"the head at {self._url} does not answer in time: {_FROZEN}") from error
        except ssl.SSLError as error:
            text = f"the certificate of {self._url} is not trusted here: {_CERTIFICATE} ({cause(error)})"
            raise Unreachable(text) from error
        except ValueError as error:
            raise HeadError(
                f"{self._url} is not a head's address: write http://HOST:PORT (--url or STEWARD_URL)"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"no head answers at {self._url}: {_REMEDY}") from error
        if status == HTTPStatus.UNAUTHORIZED and method == "GET" and not headers:
            proof = self._proof(payload("GET", urlsplit(self._url + path).path, b""))
            return self._ask(method, path, body, {"Authorization": proof}, read_s, wait_s)
        found = _read(status, content, self._url + path)
        return self._with_standstill(standstill, found) if standstill and method == "GET" else found

    def _await_answer(self, sock: socket.socket, read_s: float, wait_s: float) -> None:
        """Wait for the answer; report once if it is late. Raises TimeoutError if none comes."""
        first_s = min(_SILENT_S, read_s) * self._patience + wait_s
        left_s = read_s * self._patience + wait_s - first_s
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            if selector.select(first_s):
                return
            self._ears.silence(
                f"the head at {self._url} has not answered for {first_s:.0f} s; waiting {left_s:.0f} s more. If none "
                f"comes: {_FROZEN}"
            )
            if not selector.select(left_s):
                raise TimeoutError

    def _with_standstill(self, header: str, found: Any) -> Any:
        """Report the standstill in the header, and return the document with it as a field.

        Return the document unchanged if it has the field, if it is no object, or if the header is malformed.
        """
        try:
            said = json.loads(header)
        except ValueError:
            return found
        if not isinstance(said, dict) or (isinstance(found, dict) and "standstill" in found):
            return found
        self._ears.standstill(said)
        return {**found, "standstill": said} if isinstance(found, dict) else found

    def _connection(self) -> http.client.HTTPConnection:
        """Return a connection, not yet opened. Raises ValueError for a bad URL, OSError for a bad certificate file."""
        where = urlsplit(self._url)
        if where.scheme == "https":
            trusted = ssl.create_default_context(cafile=self._ca or None)
            return http.client.HTTPSConnection(where.hostname or "", where.port, timeout=_CONNECT_S, context=trusted)
        if where.scheme != "http" or not where.hostname:
            raise ValueError(f"{self._url} is not a URL of HTTP")
        return http.client.HTTPConnection(where.hostname, where.port, timeout=_CONNECT_S)


_FROZEN = (
    "stewardd is there and frozen, or overloaded: `systemctl restart stewardd` harms no job, `journalctl -u stewardd`"
)
_REMEDY = "is stewardd running (`systemctl status stewardd`)? Use --url or STEWARD_URL if the head is elsewhere"
_CERTIFICATE = "name the head as the certificate does (--url or STEWARD_URL), or set api.tls_ca"


def _read(status: int, content: bytes, url: str) -> Any:
    is_good = status < HTTPStatus.BAD_REQUEST
    if is_good and not content:
        return {}
    is_not_now = status == HTTPStatus.SERVICE_UNAVAILABLE
    try:
        document = json.loads(content)
    except ValueError as error:
        if is_not_now:
            raise Unreachable(f"the head at {url} is too busy to answer now") from error
        raise HeadError(f"{url} answered {status} without JSON: is it a Steward head?") from error
    if is_good:
        return document
    said = document if isinstance(document, dict) else {}
    message = str(said.get("message") or said.get("Message") or "")
    if is_not_now:
        raise Unreachable(str(said.get("error") or message or f"{url} answered {status}"))
    if "__type" in said:
        raise OperationError(str(said["__type"]), message)
    kind = NotThere if status == HTTPStatus.NOT_FOUND else HeadError
    raise kind(str(said.get("error") or f"{url} answered {status}"))
