"""The line from one of torchrun's agents to its run's coordinator, held by a thread. Standard library only.

The link fails open: while no coordinator answers, nobody is asked for anything and torchrun does as it does alone. A
base that was not told of a coordinator trains on the nodes of its own job.
"""

import contextlib
import json
import logging
import os
import secrets
import select
import shutil
import socket
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steward.job.elastic import FOLDER, GENERATION, WORDS

BEAT_S = 1.0
SILENT_S = 10.0
AGAIN_S = 0.5
AWAY_S = 45.0
"""A coordinator that ended is there again by then; what ends meanwhile may be another node's fault."""
ORPHANED_S = 3.0
"""A coordinator that said its end, and no other one so much later: the base is over, and its run with it."""
DEAF = ("sh", "-c", "trap '' TERM USR1; exec \"$@\"", "sh")
"""Before a command: it does not hear the signals that Slurm sends to all processes of a job that it preempts."""
_UNLED_PORTS = range(20_000, 32_000)
"""For a base without a coordinator: below those that the kernel gives to connections by itself."""
_LOOK_S = 0.02
_MOST_WORDS = 256
_MOST_FOLDER = 60
_log = logging.getLogger(__name__)

Line = dict[str, Any]


def missing(env: Mapping[str, str]) -> str:
    """The first variable without which a process takes part in no elastic run; empty: all are there."""
    needed = ("RUN",) if _is_base(env) else ("RUN", "ADDRESS", "TOKEN")
    names = (f"STEWARD_ELASTIC_{word}" for word in needed)
    return next((name for name in names if not env.get(name)), "")


def own_address(env: Mapping[str, str]) -> str:
    """The address of this host that the run's other nodes reach: the one on the way to the coordinator."""
    if given := env.get("STEWARD_ELASTIC_LOCAL_ADDRESS"):
        return given
    host, _ = _coordinator(env)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))
        return str(probe.getsockname()[0])


def _coordinator(env: Mapping[str, str]) -> tuple[str, int]:
    """Its host and port. Where nobody told of one: port 0 of the host that `srun` was started on (the batch host, which
    is the job's first node)."""
    host, _, port = env.get("STEWARD_ELASTIC_ADDRESS", "").rpartition(":")
    if port:
        return host.strip("[]"), int(port)
    return env.get("SLURM_LAUNCH_NODE_IPADDR") or "127.0.0.1", 0


def unled_port(run: str, led: int) -> int:
    """Where a base's nodes train without a coordinator: the same for all of them, and not the port `led` that was told
    as the coordinator's. Nodes that still look for it there would be taken for ranks of the training."""
    port = _UNLED_PORTS[zlib.crc32(f"{run} {led}".encode()) % len(_UNLED_PORTS)]
    return port + (port == led)


def _is_base(env: Mapping[str, str]) -> bool:
    return env.get("STEWARD_ELASTIC_ROLE") != "replica"


class Link:
    """The run as the agent's main thread sees it; the link's own thread keeps it true.

    `form` is the generation to take part in, `restart` says that the processes of this one are to be stopped, `leave`
    that this node is no longer wanted, `verdict` what becomes of processes that ended.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.run = env["STEWARD_ELASTIC_RUN"]
        self.folder = Path(tempfile.mkdtemp(prefix="steward-elastic-", dir=_own_folder(env)))
        self.hello: Line = {
            "agent": secrets.token_hex(8),
            "token": env.get("STEWARD_ELASTIC_TOKEN", ""),
            "node": env.get("STEWARD_ELASTIC_NODE") or env.get("SLURMD_NODENAME") or socket.gethostname(),
            "role": "base" if _is_base(env) else "replica",
            "first": env.get("SLURM_NODEID", "0") == "0",
        }
        self.address = _coordinator(env)
        self.is_alone = not env.get("STEWARD_ELASTIC_ADDRESS")
        self.changed = threading.Condition()
        self.generation, self.members = 0, list[str]()
        self.form: Line | None = None
        self.waiting: Line | None = None
        self.restart = self.leave = self.leaves = self.connected = False
        self.over = self.verdict = self.fail = ""
        self.away_since, self.ends_at = float("-inf"), float("inf")
        self.words = list[Line]()
        self._closed = threading.Event()
        self._socket: socket.socket | None = None
        self._barred: socket.socket | None = None
        self._heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._heard.bind(str(self.folder / WORDS))
        self._heard.setblocking(False)
        self._thread = threading.Thread(target=self._keep, name="steward-elastic", daemon=True)
        self._thread.start()
        if self.is_alone and self.hello["first"]:
            text = f"run {self.run} trains on the nodes of its own job only: no agent told it of a coordinator"
            print(f"steward: {text}", file=sys.stderr, flush=True)

    # The main thread's part

    def wait(self, address: str, port: int, longest_s: float, alone_s: float) -> Line | None:
        """This node's place in the next generation; None: it is not wanted any more. TimeoutError when none forms.

        A base's node that finds no coordinator for `alone_s`, or knows of none, takes its place in its own job.
        """
        until = time.monotonic() + longest_s
        alone_at = time.monotonic() + (0.0 if self.is_alone else alone_s)
        with self.changed:
            self.form, self.restart, self.over, self.verdict, self.fail = None, False, "", "", ""
            self.generation, self.words = 0, []
            self.waiting = {"wait": True, "address": address, "port": port}
            self._send(self.waiting)
            while self.form is None and not self.leave and not self._goes_unheard:
                if self.fail or time.monotonic() > until:
                    raise TimeoutError(self.fail or f"it did not form within {longest_s} s")
                alone_at = time.monotonic() + alone_s if self.connected else alone_at
                if time.monotonic() >= alone_at and self.hello["role"] == "base":
                    self.form = self._alone()
                    break
                self.changed.wait(0.2)
            self.waiting = None
            if self.form is None:
                return None
            self._begin(self.form)
            return self.form

    def notice(self) -> None:
        """This node is to be given back. The coordinator is told, or the next one. For signal handlers: no lock."""
        self.leaves = True

    def started(self, ranks: int) -> None:
        """The processes of this generation may be stopped from now on, for a change of size, where they ask nothing."""
        with self.changed:
            said = {"what": "started", "generation": self.generation, "ranks": ranks, "stoppable": True}
            self.words.append(said)
            self._send(said)

    def ended(self, how: str) -> str:
        """Tell that processes ended, and hear what to do: `restart`, `wait`, or their own end (`done`, `failed`)."""
        with self.changed:
            self._hear_words()
            if self.over != how:
                self.over = how
                self._send({"over": how})
            if self.verdict and not self.restart:
                return self.verdict  # also where the node is to leave: its processes are over for good
            if self.restart or self.is_unwanted:
                return "restart"
            return "wait" if self.is_led and not self._goes_unheard else how

    @property
    def is_led(self) -> bool:
        """A coordinator answers, or the one that answered is expected back. Asked by a signal handler: no lock."""
        return self.connected or (not self._dials_no_more and time.monotonic() < self.away_since + AWAY_S)

    @property
    def is_unwanted(self) -> bool:
        """This node goes without a save: the coordinator says so, or ended, and no other one is there to say when. Its
        processes may hang in a collective with ranks that are gone."""
        return self.leave or (self._goes_unheard and time.monotonic() >= self.ends_at + ORPHANED_S)

    @property
    def _goes_unheard(self) -> bool:
        """This node is to leave, and nobody is there to be told: without processes it has nothing to wait for."""
        return self.leaves and not self.connected

    @property
    def _dials_no_more(self) -> bool:
        return self.is_alone or self._closed.is_set()

    def close(self) -> None:
        self._closed.set()
        with self.changed:
            self._drop()
        if self._barred is not None:
            self._barred.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _alone(self) -> Line:
        """The base's job by itself. Its first node bars the coordinator's port: none comes late, for the others."""
        self.is_alone = True
        rank, world = (int(os.environ.get(name, "0")) for name in ("SLURM_NODEID", "SLURM_NNODES"))
        host, led = self.address
        if led and not rank and self._barred is None:
            self._barred = _barred_port(led)
        port = unled_port(self.run, led)
        return {"generation": 1, "rank": rank, "world": max(world, 1), "members": [], "address": host, "port": port}

    # The thread's part

    def _keep(self) -> None:
        while not self._closed.is_set():
            if not self.is_alone:
                try:
                    self._talk()
                except (OSError, ValueError) as error:
                    _log.info("the coordinator of run %s does not answer: %s", self.run, error)
                with self.changed:
                    self._drop()
            self._rest()

    def _rest(self) -> None:
        """Until a coordinator may be dialled again. The training's words are heard meanwhile: when they pile up, who
        says the next one has to wait."""
        words = select.poll()
        words.register(self._heard, select.POLLIN)
        until = time.monotonic() + AGAIN_S
        while (left_s := until - time.monotonic()) > 0 and not self._closed.is_set():
            if words.poll(left_s * 1000):
                with self.changed:
                    self._hear_words()

    def _talk(self) -> None:
        line = socket.create_connection(self.address, timeout=5)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.settimeout(_LOOK_S)
        with self.changed:
            self._socket = line
            state = {"generation": self.generation, "members": self.members, "leaves": self.leaves}
            for each in ({**self.hello, **state}, self.waiting, *self.words, {"over": self.over}):
                if each and each != {"over": ""}:
                    self._send(each)
        buffer, heard_at, beat_at, told = b"", time.monotonic(), 0.0, self.leaves
        while not self._dials_no_more:
            if self.leaves and not told:
                told = True
                with self.changed:
                    self._send({"notice": True})
            if time.monotonic() >= beat_at:
                beat_at = time.monotonic() + BEAT_S
                with self.changed:
                    self._send({"beat": True})
            with self.changed:
                self._hear_words()
            try:
                if not (came := line.recv(65536)):
                    return
            except TimeoutError:
                if time.monotonic() - heard_at > SILENT_S:
                    raise
                continue
            heard_at = time.monotonic()
            *whole, buffer = (buffer + came).split(b"\n")
            for line_of_it in whole:
                self._take(json.loads(line_of_it))

    def _take(self, line: Line) -> None:
        """Only who speaks as a coordinator is one: another program may have its port by now, the base's own training
        among them, where another node went alone first."""
        if not isinstance(line, dict):
            raise ValueError("a line is not a JSON object")
        with self.changed:
            self.connected = True
            self.ends_at = time.monotonic() if "ends" in line else float("inf")
            if "form" in line:
                self.form = line["form"]
            elif "asked" in line and line["asked"] == self.generation:
                (self.folder / f"resize-{self.generation}").touch()
            elif "unasked" in line and line["unasked"] == self.generation:
                (self.folder / f"resize-{self.generation}").unlink(missing_ok=True)
            elif "restart" in line:  # said twice, it may come when the processes that it is about are stopped
                self.restart = self.restart or (line["restart"] == self.generation > 0)
            elif line.get("leave"):
                self.leave = True
            elif "fail" in line:
                self.fail = str(line["fail"])
            elif "refused" in line:
                _log.warning("run %s does not take this node: %s", self.run, line["refused"])
            elif "verdict" in line:
                self.verdict = str(line["verdict"])
            self.changed.notify_all()

    def _begin(self, form: Line) -> None:
        self.generation, self.members = int(form["generation"]), list(form["members"])
        self.restart, self.verdict = False, ""
        os.environ[FOLDER], os.environ[GENERATION] = str(self.folder), str(self.generation)

    def _hear_words(self) -> None:
        """Take in what the training's processes said, in order. Saves are kept for a coordinator that begins anew."""
        while True:
            try:
                words = json.loads(self._heard.recv(65536))
            except ValueError:
                continue
            except OSError:
                return
            if isinstance(words, dict) and "what" in words:
                if words["what"] != "step" and len(self.words) < _MOST_WORDS and not self._has_heard(words):
                    self.words.append(words)
                self._send(words)

    def _has_heard(self, words: Line) -> bool:
        """A rank that waits says again that it saved."""
        return any({**words, "at": 0} == {**known, "at": 0} for known in self.words)

    def _send(self, line: Line) -> None:
        """With the lock held. A line that breaks is found by the thread."""
        if self._socket is None:
            return
        try:
            self._socket.sendall(json.dumps(line).encode() + b"\n")
        except OSError:
            self._drop()

    def _drop(self) -> None:
        if self.connected:
            self.connected, self.away_since = False, time.monotonic()
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _barred_port(port: int) -> socket.socket:
    """Bound and silent: nobody else listens at this port of the host, and who dials it is refused."""
    bar = socket.socket()
    with contextlib.suppress(OSError):  # another program has it, or a coordinator that answers nobody
        bar.bind(("", port))
    return bar


def _own_folder(env: Mapping[str, str]) -> str | None:
    """The job's own on this node, which is removed after the job however that ended; else the one for temporary files.
    A socket's path holds 107 bytes."""
    job = os.path.dirname(env.get("STEWARD_PROGRESS_FILE", ""))
    if job and len(job) <= _MOST_FOLDER and os.access(job, os.W_OK | os.X_OK):
        return job
    return "/tmp" if len(tempfile.gettempdir()) > _MOST_FOLDER else None
