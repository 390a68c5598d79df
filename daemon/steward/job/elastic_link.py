"""The connection from one of torchrun's agents to its run's coordinator, held by a thread. Standard library only.

The link fails open: while no coordinator answers, torchrun works as it does alone. A base without the address of a
coordinator trains on the nodes of its own job.
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
from steward.model.proof import is_proof, proof

BEAT_S = 1.0
PROOF_S = 5.0
SILENT_S = 10.0
AGAIN_S = 0.5
AWAY_S = 45.0
"""How long to expect a coordinator back; processes that end meanwhile may do so because of another node."""
ORPHANED_S = 3.0
"""How long after a coordinator announced its end, without another one, the base and its run count as over."""
DEAF = ("sh", "-c", "trap '' TERM USR1; exec \"$@\"", "sh")
"""A prefix for a command that must ignore the signals that Slurm sends to all processes of a preempted job."""
_UNLED_PORTS = range(20_000, 32_000)
"""The ports for a base without a coordinator: below those that the kernel gives to connections by itself."""
_LOOK_S = 0.02
_MOST_WORDS = 256
_MOST_FOLDER = 60
_MOST_PROOF = 4096
_log = logging.getLogger(__name__)

Line = dict[str, Any]


def missing(env: Mapping[str, str]) -> str:
    """Return the first missing variable that an elastic run needs; empty if all are set."""
    needed = ("RUN",) if _is_base(env) else ("RUN", "ADDRESS", "TOKEN")
    names = (f"STEWARD_ELASTIC_{word}" for word in needed)
    return next((name for name in names if not env.get(name)), "")


def own_address(env: Mapping[str, str]) -> str:
    """Return the address of this host for the run's other nodes: the one on the route to the coordinator."""
    if given := env.get("STEWARD_ELASTIC_LOCAL_ADDRESS"):
        return given
    host, _ = _coordinator(env)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))
        return str(probe.getsockname()[0])


def _coordinator(env: Mapping[str, str]) -> tuple[str, int]:
    """Return the coordinator's host and port; without one, port 0 of the host on which `srun` was started."""
    # That is the batch host, which is the job's first node.
    host, _, port = env.get("STEWARD_ELASTIC_ADDRESS", "").rpartition(":")
    if port:
        return host.strip("[]"), int(port)
    return env.get("SLURM_LAUNCH_NODE_IPADDR") or "127.0.0.1", 0


def unled_port(run: str, led: int) -> int:
    """Return the port at which a base's nodes train without a coordinator, the same on all of them."""
    # Never the coordinator's port `led`: nodes that still dial it there would be taken for ranks of the training.
    port = _UNLED_PORTS[zlib.crc32(f"{run} {led}".encode()) % len(_UNLED_PORTS)]
    return port + (port == led)


def _is_base(env: Mapping[str, str]) -> bool:
    return env.get("STEWARD_ELASTIC_ROLE") != "replica"


class CoordinatorLink:
    """The run as the agent's main thread sees it; the link's own thread keeps it up to date.

    `form` is the generation to take part in, `restart` means that the processes of the present one must be stopped,
    `leave` that this node must leave, and `verdict` is the coordinator's ruling on processes that ended.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.run = env["STEWARD_ELASTIC_RUN"]
        self.folder = Path(tempfile.mkdtemp(prefix="steward-elastic-", dir=_own_folder(env)))
        self.hello: Line = {
            "agent": secrets.token_hex(8),
            "node": env.get("STEWARD_ELASTIC_NODE") or env.get("SLURMD_NODENAME") or socket.gethostname(),
            "role": "base" if _is_base(env) else "replica",
            "first": env.get("SLURM_NODEID", "0") == "0",
        }
        self._token = env.get("STEWARD_ELASTIC_TOKEN", "")
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
            text = f"run {self.run} trains on the nodes of its own job only: STEWARD_ELASTIC_ADDRESS is not set"
            print(f"steward: {text}", file=sys.stderr, flush=True)

    # The main thread's part

    def wait(self, address: str, port: int, longest_s: float, alone_s: float) -> Line | None:
        """Return this node's place in the next generation; None if the node must leave.

        A base's node that finds no coordinator for `alone_s`, or knows of none, takes its place in its own job. Raises
        TimeoutError if no generation forms.
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
                    raise TimeoutError(self.fail or f"no generation formed within {longest_s} s")
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
        """Take in that this node is to be given back, and tell the coordinator, or the next one.

        Takes no lock: signal handlers call this.
        """
        self.leaves = True

    def started(self, ranks: int) -> None:
        """Report that the processes of this generation may be stopped from now on, for a change of size."""
        with self.changed:
            said = {"what": "started", "generation": self.generation, "ranks": ranks, "stoppable": True}
            self.words.append(said)
            self._send(said)

    def ended(self, how: str) -> str:
        """Report how processes ended, and return what to do: `restart`, `wait`, or their own end (`done`, `failed`)."""
        with self.changed:
            self._hear_words()
            if self.over != how:
                self.over = how
                self._send({"over": how})
            if self.verdict and not self.restart:
                return self.verdict  # even if the node must leave: its processes are over for good
            if self.restart or self.is_unwanted:
                return "restart"
            return "wait" if self.is_led and not self._goes_unheard else how

    @property
    def is_led(self) -> bool:
        """Whether a coordinator answers, or is expected back. Takes no lock: signal handlers ask."""
        return self.connected or (not self._dials_no_more and time.monotonic() < self.away_since + AWAY_S)

    @property
    def is_unwanted(self) -> bool:
        """Whether this node leaves without a save: the coordinator says so, or ended and has no successor."""
        # Without a coordinator its processes may hang in a collective with ranks that are gone.
        return self.leave or (self._goes_unheard and time.monotonic() >= self.ends_at + ORPHANED_S)

    @property
    def _goes_unheard(self) -> bool:
        """Whether this node must leave while no coordinator is connected: without processes, it need not wait."""
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
        """Return this node's place in the base's job by itself, without a coordinator."""
        # The first node occupies the coordinator's port, so that a late coordinator cannot split the base's nodes.
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
        """Wait until the coordinator may be dialled again, and take in the training's messages meanwhile."""
        # If messages pile up, the process that sends the next one has to wait.
        words = select.poll()
        words.register(self._heard, select.POLLIN)
        until = time.monotonic() + AGAIN_S
        while (left_s := until - time.monotonic()) > 0 and not self._closed.is_set():
            if words.poll(left_s * 1000):
                with self.changed:
                    self._hear_words()

    def _talk(self) -> None:
        line, proved = self._dial()
        with self.changed:
            self._socket = line
            state = {"generation": self.generation, "members": self.members, "leaves": self.leaves}
            for each in ({**self.hello, **state, "proof": proved}, self.waiting, *self.words, {"over": self.over}):
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

    def _dial(self) -> tuple[socket.socket, str]:
        """Return a connection to the coordinator, which has proved itself, and the proof for our hello."""
        line = socket.create_connection(self.address, timeout=5)
        try:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            proved = self._prove(line)
            line.settimeout(_LOOK_S)
        except BaseException:
            line.close()
            raise
        return line, proved

    def _prove(self, line: socket.socket) -> str:
        """Return the proof for the hello, once the coordinator has proved itself. Raises OSError and ValueError."""
        # Another user of the node may listen at the coordinator's port.
        mine, heard, until = secrets.token_hex(16), b"", time.monotonic() + PROOF_S
        line.sendall(json.dumps({"nonce": mine}).encode() + b"\n")
        while not heard.endswith(b"\n"):
            line.settimeout(max(until - time.monotonic(), _LOOK_S))
            if len(heard) > _MOST_PROOF or time.monotonic() > until or not (came := line.recv(_MOST_PROOF)):
                raise ValueError("what listens at its port does not prove that it knows the run's token")
            heard += came
        said = json.loads(heard)
        theirs = str(said.get("nonce", "")) if isinstance(said, dict) else ""
        if not theirs or not is_proof(said.get("proof"), self._token, "coordinator", mine, theirs):
            raise ValueError("what listens at its port does not know the run's token")
        return proof(self._token, "member", mine, theirs)

    def _take(self, line: Line) -> None:
        """Take in a line of the coordinator. Raises ValueError if it is none."""
        # Another program may have the coordinator's port by now, even the base's training if another node went alone.
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
            elif "restart" in line:  # a repeated one may come when those processes are already stopped
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
        """Take in the messages of the training's processes, in order; saves are kept for a restarted coordinator."""
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
        """Return whether the message is known: a rank that waits repeats that it saved."""
        return any({**words, "at": 0} == {**known, "at": 0} for known in self.words)

    def _send(self, line: Line) -> None:
        """Send a line; the caller holds the lock. The thread notices a broken connection."""
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
    """Return a socket that occupies the port without listening: no other program can, and connections are refused."""
    bar = socket.socket()
    with contextlib.suppress(OSError):  # another program has the port, or a coordinator that does not answer
        bar.bind(("", port))
    return bar


def _own_folder(env: Mapping[str, str]) -> str | None:
    """Return the job's own folder on this node, removed after the job; else a folder for temporary files."""
    # The path of a socket holds 107 bytes. None means the default folder for temporary files.
    job = os.path.dirname(env.get("STEWARD_PROGRESS_FILE", ""))
    if job and len(job) <= _MOST_FOLDER and os.access(job, os.W_OK | os.X_OK):
        return job
    return "/tmp" if len(tempfile.gettempdir()) > _MOST_FOLDER else None
