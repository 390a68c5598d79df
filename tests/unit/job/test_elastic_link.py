"""An agent's line to its coordinator: what is about processes of the past does not touch those of now."""

import contextlib
import json
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steward.job import elastic, elastic_link
from steward.job.elastic_link import AWAY_S, CoordinatorLink
from steward.model.proof import is_proof, proof
from steward_bed.local_setup import free_ports
from steward_bed.wait import wait_until
from tests.fakes.until import FACT_S

ALONE = {"generation": 1, "rank": 1, "world": 2, "members": [], "address": "127.0.0.1"}


class Coordinator:
    """The other end of the line."""

    def __init__(self, server: socket.socket, token: str = "word") -> None:
        self.server = server
        self.line, _ = server.accept()
        self.line.settimeout(FACT_S)
        self.read = self.line.makefile("rb")
        theirs = self.hear("nonce")["nonce"]
        self.say(nonce="mine", proof=proof(token, "coordinator", theirs, "mine"))
        self.proof = (theirs, "mine")
        self.line.recv(1, socket.MSG_PEEK)  # nothing else is said before the hello

    def hear(self, key: str) -> dict[str, Any]:
        while key not in (heard := json.loads(self.read.readline())):
            pass
        return dict(heard)

    def close(self) -> None:
        self.read.close()
        self.line.close()

    def say(self, **line: Any) -> None:
        self.line.sendall(json.dumps(line).encode() + b"\n")

    def form(self, generation: int) -> None:
        self.say(form={"generation": generation, "members": ["n1"], "rank": 0, "world": 1, "address": "n1", "port": 7})


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[CoordinatorLink, Coordinator]]:
    for name in ("STEWARD_ELASTIC_LOCAL", "STEWARD_ELASTIC_GENERATION"):  # the link sets them for its processes
        monkeypatch.setenv(name, "")
    for name in ("ORPHANED_S", "SILENT_S"):
        monkeypatch.setattr(elastic_link, name, FACT_S)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        place = {"STEWARD_ELASTIC_RUN": "7", "STEWARD_ELASTIC_ADDRESS": f"127.0.0.1:{port}"}
        made = CoordinatorLink(place | {"STEWARD_ELASTIC_TOKEN": "word", "STEWARD_ELASTIC_NODE": "n1"})
        yield made, Coordinator(server)
        made.close()


def form_a_generation(agent: CoordinatorLink, coordinator: Coordinator) -> None:
    """The agent waits, and its coordinator forms generation 1 of it."""

    def coordinate() -> None:
        coordinator.hear("wait")
        coordinator.form(1)

    threading.Thread(target=coordinate).start()
    assert agent.wait("n1", 7, 30, 60)


def test_both_ends_prove_that_they_know_the_token_and_it_is_not_sent(
    link: tuple[CoordinatorLink, Coordinator],
) -> None:
    _, coordinator = link
    hello = coordinator.hear("node")
    assert is_proof(hello["proof"], "word", "member", *coordinator.proof)
    assert "word" not in json.dumps(hello)


def test_another_program_at_the_coordinators_port_is_told_nothing(link: tuple[CoordinatorLink, Coordinator]) -> None:
    """Another user of the node may have taken the port before the coordinator listens."""
    agent, coordinator = link
    coordinator.close()
    stranger = Coordinator(coordinator.server, token="guessed")
    with contextlib.suppress(ConnectionError):
        assert stranger.read.read() == b""
    assert not agent.connected
    agent.notice()
    assert Coordinator(coordinator.server).hear("node")["leaves"], "it goes on to look for its coordinator"


def test_processes_that_are_done_for_good_are_done_also_where_their_node_is_to_leave(
    link: tuple[CoordinatorLink, Coordinator],
) -> None:
    """A launcher that went without a word to the others would have them wait for it: torchrun does, for minutes."""
    agent, coordinator = link
    form_a_generation(agent, coordinator)
    coordinator.say(leave=True)
    coordinator.say(verdict="done")
    wait_until("both are heard", lambda: agent.must_leave and agent.verdict, FACT_S)

    assert agent.ended("done") == "done"


def test_what_ends_while_its_coordinator_begins_anew_is_judged_by_the_new_one(
    link: tuple[CoordinatorLink, Coordinator],
) -> None:
    agent, coordinator = link
    form_a_generation(agent, coordinator)
    coordinator.close()
    wait_until("the line is gone", lambda: not agent.connected, FACT_S)
    assert agent.ended("failed") == "wait"
    agent.away_since -= AWAY_S
    assert agent.ended("failed") == "failed", "none came"


def test_a_notice_that_comes_while_the_coordinator_begins_anew_is_told_to_the_new_one(
    link: tuple[CoordinatorLink, Coordinator],
) -> None:
    agent, coordinator = link
    coordinator.say(beat=True)
    wait_until("the coordinator answers", lambda: agent.connected, FACT_S)
    coordinator.close()
    wait_until("the line is gone", lambda: not agent.connected, FACT_S)

    assert agent.is_led, "a launcher that gets SIGTERM now does not end: its node leaves with a save"
    agent.notice()
    Coordinator(coordinator.server).close()  # the line that the agent dialled before it knew
    again = Coordinator(coordinator.server)

    assert again.hear("leaves")["leaves"]
    again.close()
    agent.away_since -= AWAY_S
    wait_until("nobody answers", lambda: not agent.is_led, FACT_S)


def test_a_node_that_is_to_leave_and_has_nothing_to_save_waits_for_no_coordinator(
    link: tuple[CoordinatorLink, Coordinator],
) -> None:
    """Of a run whose base was ended with its coordinator: Slurm would kill the replica only after KillWait."""
    agent, coordinator = link
    form_a_generation(agent, coordinator)
    coordinator.close()
    coordinator.server.close()
    wait_until("the line is gone", lambda: not agent.connected, FACT_S)
    assert agent.ended("failed") == "wait", "its node may go on with the next coordinator"
    agent.notice()
    assert agent.ended("failed") == "failed"
    assert agent.wait("n1", 7, 30, 60) is None


@pytest.mark.parametrize("another", [False, True])
def test_who_has_to_leave_when_the_coordinator_said_its_end_waits_a_moment_for_another_one(
    link: tuple[CoordinatorLink, Coordinator], another: bool
) -> None:
    """Processes of a replica hang in a collective with those of a base that is over: nothing of theirs ends."""
    agent, coordinator = link
    coordinator.say(ends=True)
    wait_until("it is heard", lambda: agent.ends_at < float("inf"), FACT_S)
    coordinator.close()
    wait_until("the line is gone", lambda: not agent.connected, FACT_S)
    agent.notice()
    assert not agent.is_unwanted
    if another:
        Coordinator(coordinator.server).close()  # the line that the agent dialled before it knew
        again = Coordinator(coordinator.server)
        again.say(beat=True)
        wait_until("the next one answers", lambda: agent.connected, FACT_S)
    agent.ends_at -= elastic_link.ORPHANED_S
    assert agent.is_unwanted is not another
    if another:
        again.close()
        wait_until("that one is gone, too", lambda: not agent.connected, FACT_S)
        assert not agent.is_unwanted, "it died, and its successor is expected"


def test_a_second_word_to_stop_that_comes_late_does_not_stop_the_next_generation(
    link: tuple[CoordinatorLink, Coordinator],
) -> None:
    agent, coordinator = link

    def coordinate() -> None:
        coordinator.hear("wait")
        coordinator.form(1)
        coordinator.hear("wait")
        coordinator.say(restart=1)
        coordinator.form(2)
        coordinator.say(asked=2)

    threading.Thread(target=coordinate).start()
    forms = [agent.wait("n1", 7, 30, 60) for _ in range(2)]
    assert [form and form["generation"] for form in forms] == [1, 2]

    assert not agent.restart, "a loop of restarts, each of which brings about the next"


@pytest.mark.parametrize("job", ["7", "long" * 20, "not made"])
def test_its_folder_is_in_the_jobs_own_where_that_is_there_and_short_enough_for_a_socket(job: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as root, socket.create_server(("127.0.0.1", 0)) as server:
        folder = Path(root) / job
        if job != "not made":
            folder.mkdir()
        place = {"STEWARD_ELASTIC_RUN": "7", "STEWARD_ELASTIC_ADDRESS": f"127.0.0.1:{server.getsockname()[1]}"}
        agent = CoordinatorLink(place | {"STEWARD_PROGRESS_FILE": str(folder / "progress")})
        assert (agent.folder.parent == folder) == (job == "7")
        assert (agent.folder / "words").exists()
        agent.close()
        assert not agent.folder.exists()


def stranger(server: socket.socket, called: threading.Event) -> None:
    """Another program at the coordinator's port: it takes each line and says nothing that a coordinator would."""
    lines = list[socket.socket]()
    while True:
        try:
            lines.append(server.accept()[0])
        except OSError:
            break
        if len(lines) % 2 == 0:
            lines[-1].sendall(b"7\n")
        called.set()
    for line in lines:
        line.close()


def test_another_program_at_the_coordinators_port_is_no_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The base's nodes go alone, at a port that is not the stranger's."""
    for name, value in {"LOCAL": "", "GENERATION": ""}.items():
        monkeypatch.setenv(f"STEWARD_ELASTIC_{name}", value)
    monkeypatch.setenv("SLURM_NODEID", "1")
    monkeypatch.setenv("SLURM_NNODES", "2")
    called = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=stranger, args=(server, called), daemon=True).start()
        port = server.getsockname()[1]
        place = {"STEWARD_ELASTIC_RUN": "7", "STEWARD_ELASTIC_ADDRESS": f"127.0.0.1:{port}"}
        agent = CoordinatorLink(place | {"STEWARD_ELASTIC_NODE": "n2"})
        assert called.wait(FACT_S)
        form = agent.wait("n2", 7, 30, 2.0)
        assert form == {**ALONE, "port": form and form["port"]}
        assert form["port"] != port
        assert not agent.connected
        agent.close()
        server.shutdown(socket.SHUT_RDWR)


def test_a_node_that_goes_alone_first_trains_where_those_that_still_look_for_the_coordinator_do_not_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What they say to a coordinator would end its training: each server but torch's takes them for ranks."""
    for name in ("LOCAL", "GENERATION"):
        monkeypatch.setenv(f"STEWARD_ELASTIC_{name}", "")
    monkeypatch.setenv("SLURM_NNODES", "2")
    (port,) = free_ports(1)  # none that the kernel gives to other programs meanwhile
    place = {"STEWARD_ELASTIC_RUN": "7", "STEWARD_ELASTIC_ADDRESS": f"127.0.0.1:{port}", "STEWARD_ELASTIC_TOKEN": "w"}
    agents, forms = list[CoordinatorLink](), list[dict[str, Any]]()
    for number in ("0", "1"):
        monkeypatch.setenv("SLURM_NODEID", number)
        agents.append(CoordinatorLink({**place, "SLURM_NODEID": number}))
        forms.append(agents[-1].wait("127.0.0.1", 7, 30, 0.3) or {})
        with socket.socket() as late:
            late.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="in use"):
                late.bind(("", port))
    assert [form["rank"] for form in forms] == [0, 1]
    assert forms[0]["port"] == forms[1]["port"] != port
    for agent in agents:
        agent.close()
    with socket.create_server(("", port)):
        pass


def test_the_port_of_a_base_without_a_coordinator_is_never_the_coordinators() -> None:
    ports = [(led, elastic_link.port_without_coordinator("7", led)) for led in (0, *elastic_link._UNLED_PORTS)]
    assert [port for led, port in ports if port == led or not 20_000 <= port <= 32_000] == []


@pytest.mark.parametrize("led", [False, True])
def test_what_a_training_says_is_heard_also_where_no_coordinator_answers(
    led: bool, link: tuple[CoordinatorLink, Coordinator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody takes the words in, the kernel has who says the next one wait: in each step, and all ranks for it.
    The coordinator is away, or the base was told of none."""
    agent, coordinator = link
    if led:
        form_a_generation(agent, coordinator)
        coordinator.close()
        coordinator.server.close()
        wait_until("the line is gone", lambda: not agent.connected, FACT_S)
    else:
        agent = CoordinatorLink({"STEWARD_ELASTIC_RUN": "7", "SLURM_NODEID": "0"})
        assert agent.wait("127.0.0.1", 1, 30, 60)
    monkeypatch.setattr(elastic, "_run", elastic._Run())
    more = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text()) + 8
    for step in range(min(more, elastic_link._MAX_WORDS)):
        elastic.saved(step)
    wait_until("all of it is heard", lambda: len(agent.messages) == min(more, elastic_link._MAX_WORDS), FACT_S)
    agent.close()
