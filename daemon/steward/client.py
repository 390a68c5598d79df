"""The head's HTTP API for Python. Answers are the JSON documents of docs/api.md. An error is one clear line."""

import http.client
import json
import selectors
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from steward.model.access import FOLLOWS_HEADER, STANDSTILL_HEADER, for_cluster, payload
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
_READS = ("Describe", "List")


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

    The text says which address was tried and what to do. `is_unheard`: no head can have carried the call out.
    `silent_at` is the address at which no head answers; empty if there is one.
    """

    def __init__(self, text: str, *, is_unheard: bool = False, silent_at: str = "") -> None:
        super().__init__(text)
        self.is_unheard, self.silent_at = is_unheard, silent_at


@dataclass(frozen=True, slots=True)
class Ears:
    """The callbacks for news that is not part of an answer.

    `standstill` gets why the head decides nothing now (`since`, `why`, `at`), unless the page itself has that field.
    `silence` gets the message that no answer has come for seconds.
    """

    standstill: Callable[[Json], None] = lambda said: None
    silence: Callable[[str], None] = lambda text: None


class _Proof(Enum):
    """Whether a call names its caller by MUNGE."""

    NONE = "none"
    IF_POSSIBLE = "if possible"
    NEEDED = "needed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A call, before it is known which head gets it. `is_safe`: it does no harm if two heads get it."""

    method: str
    path: str
    body: bytes = b""
    target: str = ""
    proof: _Proof = _Proof.NONE
    is_safe: bool = True
    read_s: float = _READ_S
    wait_s: float = 0.0


class Client:
    """A client of the cluster's heads, of which it remembers only which one answered last.

    `url` may name several heads, separated by commas: the next one is asked where one does not answer.

    `prove` makes a MUNGE credential over a payload; changes, operations and, on login hosts, all pages need it. `ca`:
    PEM file that certifies the head (empty: well-known authorities). `cluster`: the only cluster whose head accepts the
    proofs (empty: not known). `patience` multiplies the time limits of answers. `hint` returns what else to
    do where no head answers.
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
        hint: Callable[[], str] = str,
    ) -> None:
        self._hint = hint
        self._ears, self._patience = ears, patience
        self._urls = tuple(one.strip().rstrip("/") for one in url.split(","))
        self._prove, self._cluster, self._ca = prove, cluster, ca

    def object(self, path: str, *, read_s: float = _READ_S, is_proved: bool = False) -> Json:
        """Return the JSON object at `path`. `is_proved`: name the caller to the head, if MUNGE can prove it."""
        proof = _Proof.IF_POSSIBLE if is_proved else _Proof.NONE
        answer = self._ask(_Call(method="GET", path=path, proof=proof, read_s=read_s))
        if not isinstance(answer, dict):
            raise self._is_no(path, "an object")
        return answer

    def array(self, path: str, *, read_s: float = _READ_S, wait_s: float = 0.0) -> list[Json]:
        """Return the JSON list at `path`; the head may delay its answer by up to `wait_s`."""
        answer = self._ask(_Call(method="GET", path=path, read_s=read_s, wait_s=wait_s))
        if not isinstance(answer, list):
            raise self._is_no(path, "a list")
        return answer

    def _is_no(self, path: str, wanted: str) -> HeadError:
        return HeadError(f"{self._urls[0]}{path} answered with something other than {wanted}: is it a Steward head?")

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
        is_safe = operation.startswith(_READS) or "ClientToken" in members
        return self._change("/", members, target=f"SageMaker.{operation}", is_safe=is_safe)

    def _post(self, path: str, document: Json) -> Json:
        return self._change(path, document)

    def _change(self, path: str, document: Json, *, target: str = "", is_safe: bool = False) -> Json:
        body = json.dumps(document).encode()
        call = _Call(
            method="POST", path=path, body=body, target=target, proof=_Proof.NEEDED, is_safe=is_safe, read_s=_WORK_S
        )
        answer = self._ask(call)
        return answer if isinstance(answer, dict) else {}

    def _headers(self, url: str, call: _Call) -> dict[str, str]:
        """Return the headers of a call. Raises as `_proof` does."""
        # Each head gets a proof of its own: the proof may have been used at the one that was asked before.
        path = unquote(urlsplit(url + call.path).path)
        amz = {"X-Amz-Target": call.target, "Content-Type": "application/x-amz-json-1.1"} if call.target else {}
        if call.proof is _Proof.NONE:
            return amz
        try:
            return {"Authorization": self._proof(payload(call.method, path, call.body, call.target)), **amz}
        except (HeadError, PortError):
            if call.proof is _Proof.NEEDED:
                raise
            return amz

    def _proof(self, carries: bytes) -> str:
        if self._prove is None:
            raise HeadError("no MUNGE on this machine: run this where munged runs, as root or SlurmUser")
        return f"MUNGE {self._prove(for_cluster(carries, self._cluster))}"

    def _ask(self, call: _Call) -> Any:
        """Return the answer of the first head that gives one, beginning with the one that answered last."""
        failed: list[Unreachable] = []
        for url in self._urls:
            try:
                return self._ask_at(url, call)
            except Unreachable as error:
                failed.append(error)
                if not (call.is_safe or error.is_unheard):
                    break
        if len(failed) == 1:
            raise failed[0]
        raise self._in_one(failed) from failed[-1]

    def _ask_at(self, url: str, call: _Call) -> Any:
        """Return a head's answer to one request, sent on its own connection and through no proxy.

        The head may delay its answer by up to `wait_s`. A GET that is refused without proof (401) is sent again.
        """
        headers, is_sent = self._headers(url, call), False
        try:
            with closing(self._connection(url)) as connection:
                connection.connect()
                connection.sock.settimeout(call.read_s * self._patience + call.wait_s)
                is_sent = True
                where = urlsplit(url + call.path)._replace(scheme="", netloc="").geturl()
                connection.request(call.method, where, call.body or None, headers)
                self._await_answer(connection.sock, url, call)
                answer = connection.getresponse()
                status, content, about = answer.status, answer.read(), answer.headers
        except TimeoutError as error:
            text = f"the head at {url} does not answer in time: {_FROZEN}"
            raise Unreachable(text, is_unheard=not is_sent) from error
        except ssl.SSLError as error:
            text = f"the certificate of {url} is not trusted here: {_CERTIFICATE} ({cause(error)})"
            raise Unreachable(text, is_unheard=not is_sent) from error
        except ValueError as error:
            raise HeadError(f"{url} is not a head's address: write http://HOST:PORT (--url or STEWARD_URL)") from error
        except (OSError, http.client.HTTPException) as error:
            raise self._no_answer(url, is_unheard=not is_sent) from error
        if status == HTTPStatus.UNAUTHORIZED and call.proof is not _Proof.NEEDED and not headers:
            return self._ask_at(url, replace(call, proof=_Proof.NEEDED))
        standstill, follows = about.get(STANDSTILL_HEADER, ""), FOLLOWS_HEADER in about
        if not follows:
            self._urls = (url, *(other for other in self._urls if other != url))
        found = _read(status, content, url + call.path, is_unheard=follows)
        return self._with_standstill(standstill, found) if standstill and call.method == "GET" else found

    def _in_one(self, failed: Sequence[Unreachable]) -> Unreachable:
        """Return one error for those of all heads that were asked."""
        is_unheard = all(one.is_unheard for one in failed)
        if all(one.silent_at for one in failed):
            return self._no_answer(" or ".join(one.silent_at for one in failed), is_unheard=is_unheard)
        return Unreachable("; ".join(dict.fromkeys(map(str, failed))), is_unheard=is_unheard)

    def _no_answer(self, where: str, *, is_unheard: bool) -> Unreachable:
        hint = self._hint()
        text = f"no head answers at {where}: {_REMEDY}{f', {hint}' if hint else ''}"
        return Unreachable(text, is_unheard=is_unheard, silent_at=where)

    def _await_answer(self, sock: socket.socket, url: str, call: _Call) -> None:
        """Wait for the answer; report once if it is late. Raises TimeoutError if none comes."""
        first_s = min(_SILENT_S, call.read_s) * self._patience + call.wait_s
        left_s = call.read_s * self._patience + call.wait_s - first_s
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            if selector.select(first_s):
                return
            self._ears.silence(
                f"the head at {url} has not answered for {first_s:.0f} s; waiting {left_s:.0f} s more. If none "
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

    def _connection(self, url: str) -> http.client.HTTPConnection:
        """Return a connection, not yet opened. Raises ValueError for a bad URL, OSError for a bad certificate file."""
        where = urlsplit(url)
        if where.scheme == "https":
            trusted = ssl.create_default_context(cafile=self._ca or None)
            return http.client.HTTPSConnection(where.hostname or "", where.port, timeout=_CONNECT_S, context=trusted)
        if where.scheme != "http" or not where.hostname:
            raise ValueError(f"{url} is not a URL of HTTP")
        return http.client.HTTPConnection(where.hostname, where.port, timeout=_CONNECT_S)


_FROZEN = (
    "stewardd is there and frozen, or overloaded: `systemctl restart stewardd` harms no job, `journalctl -u stewardd`"
)
_REMEDY = "is stewardd running (`systemctl status stewardd`)? Use --url or STEWARD_URL if the head is elsewhere"
_CERTIFICATE = "name the head as the certificate does (--url or STEWARD_URL), or set api.tls_ca"


def _read(status: int, content: bytes, url: str, *, is_unheard: bool = False) -> Any:
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
        raise Unreachable(str(said.get("error") or message or f"{url} answered {status}"), is_unheard=is_unheard)
    if "__type" in said:
        raise OperationError(str(said["__type"]), message)
    kind = NotThere if status == HTTPStatus.NOT_FOUND else HeadError
    raise kind(str(said.get("error") or f"{url} answered {status}"))
