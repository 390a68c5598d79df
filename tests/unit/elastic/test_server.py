"""The coordinator's lines: only the run's own agents are heard, and what is malformed harms nobody else."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from steward.adapters.node.elastic_start import listen
from steward.elastic.run import CoordinatedRun
from steward.elastic.server import Coordinator
from steward.model.proof import is_proof, proof
from steward_bed.wait import wait_until
from tests.fakes.dialled import never_refused
from tests.fakes.until import FACT_S, comes_true

Line = dict[str, Any]


class Agent:
    """A line to the coordinator, as one of torchrun's agents has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def call(cls, port: int) -> "Agent":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def say(self, line: "Line | bytes") -> None:
        self.writer.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")

    async def hear(self, key: str) -> Any:
        while line := await asyncio.wait_for(self.reader.readline(), FACT_S):
            if key in (heard := json.loads(line)):
                return heard[key]
        return None

    async def prove(self, token: str) -> dict[str, str]:
        """The proof for a hello."""
        self.say({"nonce": "mine"})
        theirs = await self.hear("nonce")
        return {"proof": proof(token, "member", "mine", theirs)}

    async def join(self, node: str, token: str = "word", role: str = "base") -> None:
        place = {"role": role, "first": role == "base" and node == "n1", "agent": str(id(self))}
        self.say({**await self.prove(token), "node": node, **place})
        self.say({"wait": True, "address": node, "port": 7})


async def both_join(port: int) -> list[Agent]:
    """The agents of the base's two nodes, n1 and n2."""
    agents = [await Agent.call(port), await Agent.call(port)]
    for agent, node in zip(agents, ("n1", "n2"), strict=True):
        await agent.join(node)
    return agents


def coordinated(
    folder: Path,
    story: Callable[[int, Coordinator], Awaitable[None]],
    after: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """`after`: when the coordinator has ended in order."""

    async def whole() -> None:
        stopped = asyncio.Event()
        coordinator = Coordinator("7", CoordinatedRun(base=2, sizes=(), grace_s=30), folder, "word", silent_s=60)
        served = asyncio.create_task(coordinator.serve("127.0.0.1", 0, stopped))
        while not (folder / "address").exists():
            await asyncio.sleep(0.01)
        try:
            await story(int((folder / "address").read_text().split()[1]), coordinator)
        finally:
            stopped.set()
            await served
        if after is not None:
            await after()

    asyncio.run(whole())


def test_the_runs_agents_form_and_the_relay_is_told(tmp_path: Path) -> None:
    async def story(port: int, _: Coordinator) -> None:
        agents = await both_join(port)
        relay = Agent(*await asyncio.open_unix_connection(str(tmp_path / "relay.sock")))

        forms = [await agent.hear("form") for agent in agents]
        while (await relay.hear("members")) != ["n1", "n2"]:
            pass

        assert [form["rank"] for form in forms] == [0, 1]
        assert {form["port"] for form in forms} == {7}
        assert (tmp_path / "relay.sock").stat().st_mode & 0o777 == 0o600

    coordinated(tmp_path, story)


@pytest.mark.parametrize(
    "hello",
    [
        {"by": "another", "node": "n2", "role": "base"},
        {"token": "word", "node": "n2", "role": "base"},
        {"by": "word", "node": "../n2"},
        {"by": "word", "node": "n2", "members": "n1"},
        {"by": "word", "node": "n2", "generation": -1},
        {"proof": ["word"], "node": {}},
        b"[]\n",
        b"\xff\xfe\n",
        b"{" * 100_000 + b"\n",
        b"[" * 60_000 + b"\n",
        b"x" * 200_000,
    ],
)
def test_who_is_not_of_the_run_is_cut_off_and_the_run_goes_on(tmp_path: Path, hello: "Line | bytes") -> None:
    async def story(port: int, coordinator: Coordinator) -> None:
        first = await Agent.call(port)
        await first.join("n1")
        stranger = await Agent.call(port)
        if isinstance(hello, dict):
            first_line = {"nonce": "mine"} if "by" not in hello else await stranger.prove(str(hello["by"]))
            stranger.say(first_line if "by" not in hello else {**first_line, **hello})
        if not isinstance(hello, dict) or "by" not in hello:
            stranger.say(hello)

        assert await stranger_is_cut_off(stranger)
        assert set(coordinator.run.peers) <= {"n1"}
        second = await Agent.call(port)
        await second.join("n2")
        assert (await first.hear("form"))["members"] == ["n1", "n2"]

    coordinated(tmp_path, story)


def test_strangers_who_hold_connections_keep_no_agent_out(tmp_path: Path) -> None:
    async def story(port: int, coordinator: Coordinator) -> None:
        held = [await Agent.call(port) for _ in range(300)]
        agents = await both_join(port)
        assert (await agents[0].hear("form"))["members"] == ["n1", "n2"]
        assert len(coordinator.unproved) <= 256
        for each in held:
            each.writer.close()

    coordinated(tmp_path, story)


def test_strangers_fill_no_log(tmp_path: Path) -> None:
    """It lies in a place that all jobs of the node share."""
    with listen() as found:
        port = found.getsockname()[1]
    argv = [sys.executable, "-m", "steward.elastic", "7", "--folder", str(tmp_path), "--nodes", "1"]
    env = {**os.environ, "STEWARD_ELASTIC_TOKEN": "word"}
    with subprocess.Popen([*argv, "--listen", "127.0.0.1", "--port", str(port)], env=env) as process:
        try:
            wait_until("it listens", (tmp_path / "address").exists, FACT_S)
            for _ in range(5000):
                with socket.create_connection(("127.0.0.1", port), FACT_S) as stranger:
                    stranger.sendall(b"x\n")
                    with contextlib.suppress(OSError):
                        stranger.recv(1)
        finally:
            process.terminate()
    assert 0 < sum(path.stat().st_size for path in tmp_path.glob("log*")) < 300_000


def test_a_coordinator_proves_that_it_knows_the_token(tmp_path: Path) -> None:
    async def story(port: int, _: Coordinator) -> None:
        agent = await Agent.call(port)
        agent.say({"nonce": "mine"})
        said = json.loads(await agent.reader.readline())
        assert is_proof(said["proof"], "word", "coordinator", "mine", said["nonce"])
        assert not is_proof(said["proof"], "word", "member", "mine", said["nonce"])

    coordinated(tmp_path, story)


def test_a_second_agent_of_a_node_is_refused_while_the_first_ones_line_lives(tmp_path: Path) -> None:
    async def story(port: int, coordinator: Coordinator) -> None:
        agents = await both_join(port)
        await agents[1].hear("form")

        second = await Agent.call(port)
        await second.join("n2", role="replica")

        assert await second.hear("refused") == "another agent of node n2 takes part"
        assert await second.hear("form") is None
        assert (coordinator.run.generation, coordinator.run.members) == (1, ("n1", "n2"))
        assert coordinator.run.peers["n2"].is_base

    coordinated(tmp_path, story)


def test_an_agent_whose_line_broke_takes_its_own_place_again(tmp_path: Path) -> None:
    async def story(port: int, coordinator: Coordinator) -> None:
        agents = await both_join(port)
        await agents[1].hear("form")
        mine = {"node": "n2", "role": "base", "agent": str(id(agents[1]))}

        again = await Agent.call(port)
        mine |= await again.prove("word")
        again.say({**mine, "generation": 1, "members": ["n1", "n2"]})

        assert await again.hear("beat")
        assert coordinator.run.generation == 1

    coordinated(tmp_path, story)


def test_the_bases_own_agent_takes_the_place_of_a_replicas_on_the_same_node(tmp_path: Path) -> None:
    async def story(port: int, coordinator: Coordinator) -> None:
        guest = await Agent.call(port)
        await guest.join("n2", role="replica")
        await guest.hear("beat")

        agents = await both_join(port)

        assert (await agents[1].hear("form"))["members"] == ["n1", "n2"]

    coordinated(tmp_path, story)


async def stranger_is_cut_off(stranger: Agent) -> bool:
    """It is told no more than a proof."""
    try:
        heard = await asyncio.wait_for(stranger.reader.read(), FACT_S)
        return heard == b"" or json.loads(heard).keys() == {"nonce", "proof"}
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("base_is_here", [False, True])
def test_a_coordinator_that_ends_with_its_base_sends_replicas_away(tmp_path: Path, base_is_here: bool) -> None:
    """Their processes may hang in a collective with ranks that are gone: Slurm would end them after KillWait."""
    left: list[Agent] = []

    async def story(port: int, coordinator: Coordinator) -> None:
        base, other, replica = [await Agent.call(port) for _ in range(3)]
        await base.join("n1")
        await other.join("n2")
        assert await base.hear("form")
        await replica.join("n3", role="replica")
        assert await replica.hear("beat")
        for agent in (other,) if base_is_here else (base, other):
            agent.writer.close()
        while len(coordinator.run.peers) > 1 + base_is_here:
            await asyncio.sleep(0.01)
        left.append(replica)

    async def after() -> None:
        assert await left[0].hear("ends" if base_is_here else "leave") is True

    coordinated(tmp_path, story, after)


def test_a_broken_line_of_an_agent_ends_that_agents_line_only(tmp_path: Path) -> None:
    async def story(port: int, coordinator: Coordinator) -> None:
        agents = await both_join(port)
        await agents[0].hear("form")

        agents[1].say({"what": "saved", "generation": "many"})

        assert await agents[0].hear("restart"), "the first is told that the generation is over"
        assert set(coordinator.run.peers) == {"n1"}

    coordinated(tmp_path, story)


def test_an_order_that_is_malformed_ends_the_relays_line_only(tmp_path: Path) -> None:
    async def story(port: int, coordinator: Coordinator) -> None:
        relay = Agent(*await asyncio.open_unix_connection(str(tmp_path / "relay.sock")))
        relay.say({"order": "resize", "members": 7})
        while await asyncio.wait_for(relay.reader.readline(), FACT_S):
            pass

        again = Agent(*await asyncio.open_unix_connection(str(tmp_path / "relay.sock")))
        assert await again.hear("state") == "waiting"
        assert coordinator.run.generation == 0

    coordinated(tmp_path, story)


def test_the_relays_socket_is_not_there_before_it_is_served(tmp_path: Path) -> None:
    async def story(port: int, coordinator: Coordinator) -> None:
        await comes_true("the relay is answered", answered.is_set)

    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        with never_refused(folder / "relay.sock") as answered:
            coordinated(folder, story)


def test_a_run_that_was_requeued_takes_over_nothing_of_its_last_run(tmp_path: Path) -> None:
    """The folder is the job's; each run has a token of its own."""

    def kept_by(token: str) -> Coordinator:
        return Coordinator("7", CoordinatedRun(base=2, sizes=(), grace_s=30), tmp_path, token)

    first = kept_by("word")
    first.run.generation, first.run.members, first.run.trained = 5, ("n1", "n2", "n3"), True
    first.keep()
    same, next_one = kept_by("word"), kept_by("another")
    same.restore()
    next_one.restore()
    assert (same.run.state, same.run.generation, same.run.trained) == ("running", 5, True)
    assert (next_one.run.state, next_one.run.generation, next_one.run.trained) == ("waiting", 0, False)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_without_an_address_it_is_reached_at_all_of_the_machines(tmp_path: Path, host: str) -> None:
    async def story() -> None:
        stopped = asyncio.Event()
        coordinator = Coordinator("7", CoordinatedRun(base=1, sizes=(), grace_s=30), tmp_path, "word", silent_s=60)
        listening = listen()
        port = listening.getsockname()[1]
        served = asyncio.create_task(coordinator.serve("", 0, stopped, listening))
        while not (tmp_path / "address").exists():
            await asyncio.sleep(0.01)
        agent = Agent(*await asyncio.open_connection(host, port))
        await agent.join("n1")
        assert (await agent.hear("form"))["world"] == 1
        stopped.set()
        await served

    asyncio.run(story())
