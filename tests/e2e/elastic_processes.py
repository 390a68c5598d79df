"""An elastic run without Slurm: a coordinator and torchrun's agents as processes of this machine."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steward.adapters.node.elastic_start import listen
from steward.job.elastic_batch import sample_at

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXAMPLE = EXAMPLES / "pytorch_elastic" / "train.py"
PLAIN = EXAMPLES / "plain_elastic" / "train.py"
TORCHRUN = (
    *("torch.distributed.run", "--rdzv-backend=steward", "--rdzv-id=7", "--nnodes=1:4", "--nproc-per-node=1"),
    *("--max-restarts=0", "--rdzv-conf=alone_s=5"),
)
LAUNCH = ("steward.job.launch", "--alone-s=5", sys.executable)
LONGEST_S = 240.0
_BATCH, _LENGTH, _SEED = 48, 4096, 7
"""The batch, length and seed of the examples."""

Line = dict[str, Any]


class ElasticRun:
    """Its agents are named like nodes; n1 and n2 are the base."""

    def __init__(
        self, folder: Path, script: list[str], *, grace_s: int = 60, launcher: tuple[str, ...] = TORCHRUN
    ) -> None:
        self.folder, self.command = folder, [sys.executable, "-m", *launcher, *script]
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        env = {name: value for name, value in os.environ.items() if not name.startswith(("STEWARD_", "SLURM"))}
        own = {"STEWARD_ELASTIC_TOKEN": "word", "STEWARD_ELASTIC_RUN": "7"}
        self.env = env | own | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
        argv = [sys.executable, "-m", "steward.elastic", "7", "--folder", str(folder / "c"), "--nodes", "2"]
        argv += ["--sizes", "2,3,4", "--grace", str(grace_s), "--silent", "60", "--listen", "127.0.0.1"]
        with listen() as found:  # a port as the agent's: when the coordinator ends, no connection gets it
            argv += ["--port", str(found.getsockname()[1])]
        self.coordinator = self.start(argv, "coordinator")
        self.wait("the coordinator listens", lambda: (folder / "c" / "address").exists())
        self.env["STEWARD_ELASTIC_ADDRESS"] = ":".join((folder / "c" / "address").read_text().split())
        self.relay = socket.socket(socket.AF_UNIX)
        self.relay.connect(str(folder / "c" / "relay.sock"))
        self.relay.settimeout(0.2)
        self.unread, self.words = b"", list[Line]()

    def start(self, argv: list[str], name: str, **env: str) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(argv, env=self.env | env, stdout=log, stderr=log, start_new_session=True)

    def agent(self, node: str, role: str) -> None:
        """The launcher as a user types it."""
        place = {"STEWARD_ELASTIC_NODE": node, "SLURM_NODEID": "1" if node == "n2" else "0", "SLURM_NNODES": "2"}
        self.agents[node] = self.start(self.command, node, STEWARD_ELASTIC_ROLE=role, **place)

    def word(self) -> Line:
        """What the coordinator said last."""
        try:
            while came := self.relay.recv(65536):
                *lines, self.unread = (self.unread + came).split(b"\n")
                self.words += [json.loads(line) for line in lines]
                if lines and not self.unread:
                    break
        except TimeoutError:
            pass
        return self.words[-1] if self.words else {}

    def resize(self, *members: str, grace_s: int = 60) -> None:
        """The head's order to grow or shrink with a save."""
        wish = {"order": "resize", "generation": self.word()["generation"] + 1, "members": members, "grace_s": grace_s}
        self.relay.sendall(json.dumps(wish | {"why": "asked"}).encode() + b"\n")

    def wait_running(self, *members: str) -> None:
        def is_running() -> bool:
            word = self.word()
            return (word.get("state"), word.get("members")) == ("running", list(members))

        self.wait(f"it runs on {members}", is_running)

    def wait(self, what: str, is_true: Callable[[], bool]) -> None:
        until = time.monotonic() + LONGEST_S
        while not is_true():
            assert time.monotonic() < until, f"never: {what}\n{self.logs()}"
            time.sleep(0.05)

    def ends(self, longest_s: float) -> list[int]:
        """The statuses of the base's agents. AssertionError with the logs, and with the stacks of those that hang."""
        try:
            return [self.agents[node].wait(longest_s) for node in ("n1", "n2")]
        except subprocess.TimeoutExpired as error:
            for agent in self.agents.values():
                for pid in reversed(_family(agent.pid)) if agent.poll() is None else ():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGABRT)  # Python's faulthandler writes where each of its threads is
                    time.sleep(0.5)
            raise AssertionError(f"{error}\n{self.logs(12_000)}") from None

    def notice(self, node: str) -> None:
        """Slurm takes a replica's node back: it signals all processes of the job there."""
        for pid in _family(self.agents[node].pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def kill_node(self, node: str) -> None:
        """The node is dead: its agent and its training process together."""
        agent = self.agents[node]
        for pid in reversed(_family(agent.pid)):
            os.kill(pid, signal.SIGKILL)
        agent.wait()

    def logs(self, most: int = 3000) -> str:
        """The last so many characters of each."""
        return "\n".join(f"{each.name}:\n{each.read_text()[-most:]}" for each in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        """No process is left behind."""
        for process in [*self.agents.values(), self.coordinator]:
            process.terminate()
        for process in [*self.agents.values(), self.coordinator]:
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.relay.close()


def _family(pid: int) -> list[int]:
    """A process and all that it started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(each for child in children for each in _family(int(child)))]


def told(folder: Path) -> list[Line]:
    """What the training wrote down; a half-written last line left out."""
    path = folder / "progress.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def samples_by_step(lines: list[Line]) -> dict[int, list[int]]:
    """The samples that each step took over all ranks, in order; of a step that was made twice, the last time counts."""
    taken: dict[int, dict[int, dict[int, list[int]]]] = {}
    for line in lines:
        if line["what"] == "step":
            taken.setdefault(line["step"], {}).setdefault(line["generation"], {})[line["rank"]] = line["samples"]
    last = {step: generations[max(generations)] for step, generations in taken.items()}
    return {step: [index for rank in sorted(ranks) for index in ranks[rank]] for step, ranks in last.items()}


def samples_at_a_fixed_size(steps: int) -> list[int]:
    """The samples that the examples' trainings take in so many steps, in order, where nothing happens to them."""
    return [sample_at(number, _LENGTH, _SEED) for number in range(steps * _BATCH)]


def losses(lines: list[Line]) -> dict[int, float]:
    return {line["step"]: line["loss"] for line in lines if line["what"] == "step"}
