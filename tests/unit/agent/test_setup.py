"""The agent and the setups it is ordered: each runs once, whatever becomes of the agent meanwhile."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from steward.adapters.node.setup_dir import SetupDir
from steward.adapters.proc import all_processes, look
from steward.adapters.wire.frames import Malformed
from steward.adapters.wire.order_messages import order_frames, setup_of
from steward.agent.setup import CUT_OFF
from steward.ports import Retryable
from tests.fakes.setup_bench import DONE, FAILED, RUNNING, Bench, an_agent
from tests.fakes.setups import NodeDisk
from tests.fakes.until import comes_true

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def disk(tmp_path: Path) -> NodeDisk:
    return NodeDisk(home=tmp_path)


def test_the_head_hears_each_state_and_the_whole_log(disk: NodeDisk) -> None:
    disk.script("echo hello\n")

    async def story() -> None:
        async with an_agent(disk) as agent:
            agent.order(disk.order())
            await agent.until_over()
            await comes_true("the log is there", lambda: "succeeded." in agent.log)
            assert agent.reports()[0].state is RUNNING
            assert agent.state() is DONE
            assert "\nhello\n" in agent.log

    asyncio.run(story())


def test_an_order_that_comes_again_runs_nothing_and_is_answered(disk: NodeDisk) -> None:
    disk.script(f"echo once >> {disk.home}/trace\n")

    async def story() -> None:
        async with an_agent(disk) as agent:
            for _ in range(3):
                agent.order(disk.order())
            await agent.until_over()
            told = len(agent.reports())
            agent.order(disk.order())
            await comes_true("it is told again", lambda: len(agent.reports()) > told)

    asyncio.run(story())
    assert disk.starts == ["t1"]
    assert (disk.home / "trace").read_text() == "once\n"


def test_a_script_survives_the_agent_and_the_next_one_tells_its_end(disk: NodeDisk) -> None:
    disk.script(f"echo began >> {disk.home}/trace; while ! test -e {disk.home}/go; do sleep 0.05; done; exit 4\n")

    async def story() -> None:
        async with an_agent(disk) as first:
            first.order(disk.order())
            await comes_true("it runs", lambda: (disk.home / "trace").exists())
        async with an_agent(disk) as second:
            second.order(disk.order())
            await comes_true("it is told to run", lambda: second.state() is RUNNING)
            (disk.home / "go").touch()
            await second.until_over()
            assert (second.state(), second.reports()[-1].exit_status) == (FAILED, 4)
            await comes_true("the log is there", lambda: "did not run" in second.log)

    asyncio.run(story())
    assert disk.starts == ["t1"]
    assert (disk.home / "trace").read_text() == "began\n"


def test_a_setup_that_ended_while_no_agent_was_there_is_told_by_the_next(disk: NodeDisk) -> None:
    disk.script("true\n")
    disk.run(disk.order())

    async def story() -> None:
        async with an_agent(disk) as agent:
            await comes_true("it greets with it", lambda: agent.setups.frames())
            assert [setup_of(frame).state for frame in agent.setups.frames()] == [DONE]

    asyncio.run(story())


def test_a_setup_of_an_earlier_boot_is_not_told(disk: NodeDisk) -> None:
    disk.script("true\n")
    disk.run(disk.order())
    disk.boot = "b-2"

    async def story() -> None:
        async with an_agent(disk) as agent:
            agent.order(disk.order("t2"))
            await agent.until_over("t2")
            assert agent.reports("t1") == []

    asyncio.run(story())


def test_after_a_reboot_the_same_order_runs_again(disk: NodeDisk) -> None:
    disk.script(f"echo ran >> {disk.home}/trace\n")
    disk.run(disk.order())
    disk.boot = "b-2"

    async def story() -> None:
        async with an_agent(disk) as agent:
            agent.order(disk.order())
            await agent.until_over()

    asyncio.run(story())
    assert (disk.home / "trace").read_text() == "ran\nran\n"


def test_a_runner_that_is_killed_is_told_as_interrupted_and_its_script_is_ended(disk: NodeDisk) -> None:
    disk.script(f"echo $$ > {disk.home}/pid.new; mv {disk.home}/pid.new {disk.home}/pid; exec sleep 1000\n")

    async def story() -> None:
        async with an_agent(disk) as agent:
            agent.order(disk.order())
            await comes_true("it runs", lambda: (disk.home / "pid").exists())
            await comes_true("it is told", lambda: agent.reports() and agent.reports()[-1].step == "OnCreate")
            script = look(int((disk.home / "pid").read_text()))
            assert script is not None
            os.kill(runner_of(disk), signal.SIGKILL)
            await agent.until_over()
            assert agent.reports()[-1].why == CUT_OFF
            await comes_true("it is ended", lambda: look(script.process.pid) is None)

    asyncio.run(story())


def runner_of(disk: NodeDisk) -> int:
    words = f"run\0{disk.root}\0t1".encode()
    for seen in all_processes():
        with contextlib.suppress(OSError):  # it ended meanwhile
            if words in (Path("/proc") / str(seen.process.pid) / "cmdline").read_bytes() and not seen.dead:
                return seen.process.pid
    raise AssertionError("no runner")


def test_a_newer_order_waits_until_the_one_that_runs_is_over(disk: NodeDisk) -> None:
    disk.script(
        f"while ! test -e {disk.home}/go; do sleep 0.05; done; echo $STEWARD_SETUP_TOKEN >> {disk.home}/trace\n"
    )

    async def story() -> None:
        async with an_agent(disk) as agent:
            agent.order(disk.order("t1"))
            await comes_true("it runs", lambda: agent.state("t1") is RUNNING)
            agent.order(disk.order("t2"))
            agent.order(disk.order("t3"))
            await asyncio.sleep(0.1)
            (disk.home / "go").touch()
            await agent.until_over("t3")

    asyncio.run(story())
    assert disk.starts == ["t1", "t3"]
    assert (disk.home / "trace").read_text() == "t1\nt3\n"


def test_a_runner_that_cannot_be_started_is_told_with_why(tmp_path: Path) -> None:
    class Broken(NodeDisk):
        def start(self, setup: SetupDir) -> None:
            raise Retryable("no more processes")

    disk = Broken(home=tmp_path)

    async def story() -> None:
        async with an_agent(disk) as agent:
            agent.order(disk.order())
            await agent.until_over()
            assert agent.reports()[-1].why == "the runner could not be started: no more processes"

    asyncio.run(story())


def test_parts_out_of_turn_are_refused(disk: NodeDisk) -> None:
    async def story() -> None:
        bench = Bench(disk)
        (frame,) = order_frames(disk.order())
        with pytest.raises(Malformed):
            bench.setups.hear({**frame, "part": 1, "parts": 2})
        with pytest.raises(Malformed):
            bench.setups.hear({**frame, "token": "../../etc/passwd"})
        with pytest.raises(Malformed):
            bench.setups.hear({**frame, "data": "AAAA"})

    asyncio.run(story())
