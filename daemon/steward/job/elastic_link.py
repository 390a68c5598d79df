"""The connection from one of torchrun's agents to its run's coordinator, held by a thread. Standard library only.

The link fails open: while no coordinator answers, torchrun works as it does without Steward. A base that was given no
coordinator's address trains on the nodes of its own job.
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
"""How long the coordinator may take to prove its identity."""
SILENT_S = 10.0
"""A coordinator that is silent for this long counts as lost."""
AGAIN_S = 0.5
"""The pause between two tries to connect."""
AWAY_S = 45.0
"""How long to wait for a lost coordinator; meanwhile the end of processes, perhaps due to a lost node, is not final."""
ORPHANED_S = 3.0
"""How long a successor may take after a coordinator announced its end; then a node that must leave does so unsaved."""
IGNORE_SIGNALS = ("sh", "-c", "trap '' TERM USR1; exec \"$@\"", "sh")
"""A prefix that has a command ignore the signals that Slurm sends to all processes of a preempted job."""
_UNLED_PORTS = range(20_000, 32_000)
"""The ports for a base without a coordinator, below the kernel's ephemeral ports."""
_POLL_S = 0.02
_MAX_WORDS = 256
_MAX_FOLDER = 60
_MAX_PROOF = 4096
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
    """Return the coordinator's host and port; port 0 of the job's first node if there is no coordinator."""
    # `srun` is started on the batch host, which is the first node.
    host, _, port = env.get("STEWARD_ELASTIC_ADDRESS", "").rpartition(":")
    if port:
        return host.strip("[]"), int(port)
    return env.get("SLURM_LAUNCH_NODE_IPADDR") or "127.0.0.1", 0


def port_without_coordinator(run: str, led: int) -> int:
    """Return the port at which a base's nodes train without a coordinator, the same on all of them."""
    # Never the coordinator's port `led`: nodes that still dial that port would be taken for ranks of the training.
    port = _UNLED_PORTS[zlib.crc32(f"{run} {led}".encode()) % len(_UNLED_PORTS)]
    return port + (port == led)


def _is_base(env: Mapping[str, str]) -> bool:
    return env.get("STEWARD_ELASTIC_ROLE") != "replica"


class CoordinatorLink:
    """A connection to the coordinator, and the run's state by the coordinator's messages.

    The agent's main thread reads the state; a thread of the link keeps it up to date. `form` is the layout of the next
    generation. `restart`: the processes of the present generation must be stopped. `leave`: the coordinator sends this
    node away. `leaves`: Slurm reclaims this node. `verdict` is the coordinator's ruling on processes that ended.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.run = env["STEWARD_ELASTIC_RUN"]
        self.folder = Path(tempfile.mkdtemp(prefix="steward-elastic-", dir=_job_folder(env)))
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
        self.layout: Line | None = None
        self.wait_message: Line | None = None
        """The message that this node waits for a generation, repeated on each new connection; None: no wait."""
        self.restart = self.must_leave = self.is_reclaimed = self.connected = False
        self.outcome = self.verdict = self.failure = ""
        """How this node's processes ended, the coordinator's ruling on that, and why no generation can form."""
        self.away_since, self.ends_at = float("-inf"), float("inf")
        self.messages = list[Line]()
        """The training's messages of this generation but steps, repeated to a restarted coordinator."""
        self._closed = threading.Event()
        self._socket: socket.socket | None = None
        self._port_guard: socket.socket | None = None
        """Occupies the coordinator's port while the base trains alone."""
        self._inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._inbox.bind(str(self.folder / WORDS))
        self._inbox.setblocking(False)
        self._thread = threading.Thread(target=self._stay_connected, name="steward-elastic", daemon=True)
        self._thread.start()
        if self.is_alone and self.hello["first"]:
            text = f"run {self.run} trains on the nodes of its own job only: STEWARD_ELASTIC_ADDRESS is not set"
            print(f"steward: {text}", file=sys.stderr, flush=True)

    # The main thread's part

    def wait(self, address: str, port: int, longest_s: float, alone_s: float) -> Line | None:
        """Return the next generation's layout (this node's rank, the world, rank 0); None if the node must leave.

        A base's node that finds no coordinator for `alone_s`, or was given no address of one, gets the layout of its
        own job. Raises TimeoutError if no generation forms.
        """
        until = time.monotonic() + longest_s
        alone_at = time.monotonic() + (0.0 if self.is_alone else alone_s)
        with self.changed:
            self.layout, self.restart, self.outcome, self.verdict, self.failure = None, False, "", "", ""
            self.generation, self.messages = 0, []
            self.wait_message = {"wait": True, "address": address, "port": port}
            self._send(self.wait_message)
            while self.layout is None and not self.must_leave and not self._leaves_without_coordinator:
                if self.failure or time.monotonic() > until:
                    raise TimeoutError(self.failure or f"no generation formed within {longest_s} s")
                alone_at = time.monotonic() + alone_s if self.connected else alone_at
                if time.monotonic() >= alone_at and self.hello["role"] == "base":
                    self.layout = self._layout_without_coordinator()
                    break
                self.changed.wait(0.2)
            self.wait_message = None
            if self.layout is None:
                return None
            self._begin(self.layout)
            return self.layout

    def notice(self) -> None:
        """Note that Slurm reclaims this node; the link's thread tells the coordinator, or its successor."""
        # No lock: signal handlers call this.
        self.is_reclaimed = True

    def started(self, ranks: int) -> None:
        """Report that the processes of this generation have started, and may be stopped for a change of size."""
        with self.changed:
            message = {"what": "started", "generation": self.generation, "ranks": ranks, "stoppable": True}
            self.messages.append(message)
            self._send(message)

    def ended(self, how: str) -> str:
        """Report how this node's processes ended; return `restart`, `wait`, or how the run ends (`done`, `failed`)."""
        with self.changed:
            self._read_inbox()
            if self.outcome != how:
                self.outcome = how
                self._send({"over": how})
            if self.verdict and not self.restart:
                return self.verdict  # even if the node must leave: its processes are over for good
            if self.restart or self.is_unwanted:
                return "restart"
            return "wait" if self.is_led and not self._leaves_without_coordinator else how

    @property
    def is_led(self) -> bool:
        """Whether a coordinator is connected, or was within the last `AWAY_S` seconds."""
        # No lock: signal handlers ask.
        return self.connected or (not self._stopped_dialling and time.monotonic() < self.away_since + AWAY_S)

    @property
    def is_unwanted(self) -> bool:
        """Whether this node leaves without a save: the coordinator sent it away, or ended and has no successor."""
        # Without a coordinator this node's processes may hang in a collective with ranks that are gone.
        return self.must_leave or (self._leaves_without_coordinator and time.monotonic() >= self.ends_at + ORPHANED_S)

    @property
    def _leaves_without_coordinator(self) -> bool:
        """Whether Slurm reclaims this node while no coordinator is connected."""
        return self.is_reclaimed and not self.connected

    @property
    def _stopped_dialling(self) -> bool:
        return self.is_alone or self._closed.is_set()

    def close(self) -> None:
        self._closed.set()
        with self.changed:
            self._drop()
        if self._port_guard is not None:
            self._port_guard.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _layout_without_coordinator(self) -> Line:
        """Return the layout of the base's own job, without a coordinator."""
        # The first node occupies the coordinator's port, so that a late coordinator cannot split the base's nodes.
        self.is_alone = True
        rank, world = (int(os.environ.get(name, "0")) for name in ("SLURM_NODEID", "SLURM_NNODES"))
        host, led = self.address
        if led and not rank and self._port_guard is None:
            self._port_guard = _occupied_port(led)
        port = port_without_coordinator(self.run, led)
        return {"generation": 1, "rank": rank, "world": max(world, 1), "members": [], "address": host, "port": port}

    # The thread's part

    def _stay_connected(self) -> None:
        while not self._closed.is_set():
            if not self.is_alone:
                try:
                    self._talk()
                except (OSError, ValueError) as error:
                    _log.info("the coordinator of run %s does not answer: %s", self.run, error)
                with self.changed:
                    self._drop()
            self._wait_to_redial()

    def _wait_to_redial(self) -> None:
        """Wait until the coordinator may be dialled again, and read the training's messages meanwhile."""
        # A full socket would block the training's next message.
        arrivals = select.poll()
        arrivals.register(self._inbox, select.POLLIN)
        until = time.monotonic() + AGAIN_S
        while (left_s := until - time.monotonic()) > 0 and not self._closed.is_set():
            if arrivals.poll(left_s * 1000):
                with self.changed:
                    self._read_inbox()

    def _talk(self) -> None:
        line, proved = self._dial()
        with self.changed:
            self._socket = line
            state = {"generation": self.generation, "members": self.members, "leaves": self.is_reclaimed}
            for each in (
                {**self.hello, **state, "proof": proved},
                self.wait_message,
                *self.messages,
                {"over": self.outcome},
            ):
                if each and each != {"over": ""}:
                    self._send(each)
        buffer, heard_at, beat_at, told = b"", time.monotonic(), 0.0, self.is_reclaimed
        while not self._stopped_dialling:
            if self.is_reclaimed and not told:
                told = True
                with self.changed:
                    self._send({"notice": True})
            if time.monotonic() >= beat_at:
                beat_at = time.monotonic() + BEAT_S
                with self.changed:
                    self._send({"beat": True})
            with self.changed:
                self._read_inbox()
            try:
                if not (came := line.recv(65536)):
                    return
            except TimeoutError:
                if time.monotonic() - heard_at > SILENT_S:
                    raise
                continue
            heard_at = time.monotonic()
            *whole, buffer = (buffer + came).split(b"\n")
            for text in whole:
                self._on_line(json.loads(text))

    def _dial(self) -> tuple[socket.socket, str]:
        """Return a connection to the coordinator, which has proved its identity, and the proof for our hello."""
        line = socket.create_connection(self.address, timeout=5)
        try:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            proved = self._prove(line)
            line.settimeout(_POLL_S)
        except BaseException:
            line.close()
            raise
        return line, proved

    def _prove(self, line: socket.socket) -> str:
        """Return the proof for our hello, once the coordinator has proved its own. Raises OSError and ValueError."""
        # Another user of the node may listen at the coordinator's port.
        mine, heard, until = secrets.token_hex(16), b"", time.monotonic() + PROOF_S
        line.sendall(json.dumps({"nonce": mine}).encode() + b"\n")
        while not heard.endswith(b"\n"):
            line.settimeout(max(until - time.monotonic(), _POLL_S))
            if len(heard) > _MAX_PROOF or time.monotonic() > until or not (came := line.recv(_MAX_PROOF)):
                raise ValueError("what listens at its port does not prove that it knows the run's token")
            heard += came
        said = json.loads(heard)
        theirs = str(said.get("nonce", "")) if isinstance(said, dict) else ""
        if not theirs or not is_proof(said.get("proof"), self._token, "coordinator", mine, theirs):
            raise ValueError("what listens at its port does not know the run's token")
        return proof(self._token, "member", mine, theirs)

    def _on_line(self, line: Line) -> None:
        """Apply a line of the coordinator to the state. Raises ValueError if the line is no JSON object."""
        # Another program may have the coordinator's port by now, even the training of a base without a coordinator.
        if not isinstance(line, dict):
            raise ValueError("a line is not a JSON object")
        with self.changed:
            self.connected = True
            self.ends_at = time.monotonic() if "ends" in line else float("inf")
            if "form" in line:
                self.layout = line["form"]
            elif "asked" in line and line["asked"] == self.generation:
                (self.folder / f"resize-{self.generation}").touch()
            elif "unasked" in line and line["unasked"] == self.generation:
                (self.folder / f"resize-{self.generation}").unlink(missing_ok=True)
            elif "restart" in line:  # may be repeated when those processes are already stopped
                self.restart = self.restart or (line["restart"] == self.generation > 0)
            elif line.get("leave"):
                self.must_leave = True
            elif "fail" in line:
                self.failure = str(line["fail"])
            elif "refused" in line:
                _log.warning("run %s does not take this node: %s", self.run, line["refused"])
            elif "verdict" in line:
                self.verdict = str(line["verdict"])
            self.changed.notify_all()

    def _begin(self, form: Line) -> None:
        self.generation, self.members = int(form["generation"]), list(form["members"])
        self.restart, self.verdict = False, ""
        os.environ[FOLDER], os.environ[GENERATION] = str(self.folder), str(self.generation)

    def _read_inbox(self) -> None:
        """Pass the messages of the training's processes on, and keep all but steps for a restarted coordinator."""
        while True:
            try:
                words = json.loads(self._inbox.recv(65536))
            except ValueError:
                continue
            except OSError:
                return
            if isinstance(words, dict) and "what" in words:
                if words["what"] != "step" and len(self.messages) < _MAX_WORDS and not self._is_known(words):
                    self.messages.append(words)
                self._send(words)

    def _is_known(self, words: Line) -> bool:
        """Return whether the message was kept before: a rank that waits repeats that it saved."""
        return any({**words, "at": 0} == {**known, "at": 0} for known in self.messages)

    def _send(self, line: Line) -> None:
        """Send a line, or drop a broken connection. The caller holds the lock."""
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


def _occupied_port(port: int) -> socket.socket:
    """Return a socket that occupies the port without listening, so that connections to the port are refused."""
    bar = socket.socket()
    with contextlib.suppress(OSError):  # another program has the port, or a coordinator that does not answer
        bar.bind(("", port))
    return bar


def _job_folder(env: Mapping[str, str]) -> str | None:
    """Return the job's own folder on this node, removed after the job; `/tmp` or None (the default) if unusable."""
    # The path of a socket holds 107 bytes at most.
    job = os.path.dirname(env.get("STEWARD_PROGRESS_FILE", ""))
    if job and len(job) <= _MAX_FOLDER and os.access(job, os.W_OK | os.X_OK):
        return job
    return "/tmp" if len(tempfile.gettempdir()) > _MAX_FOLDER else None
