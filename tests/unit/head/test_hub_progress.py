"""What agents tell the head of jobs that run, over a real link: how far they are, and what their tasks are doing."""

import asyncio

import pytest

from steward.adapters.wire.job_messages import bundle_frames, progress_frame, sight_frame
from steward.adapters.wire.order_messages import stacks_of
from steward.model.agent_action import CollectStacks
from steward.model.ids import JobId, Key, NodeName
from steward.model.job_report import Progress
from steward.model.job_sight import Doing, RankGroup, StepSight
from steward.model.why import Why
from steward.ports import Permanent
from tests.fakes.hub_bench import HubBench, a_hub
from tests.fakes.until import comes_true

N1, J7 = NodeName("n1"), JobId(7)


def at_step(step: int | None) -> Progress:
    stepped = None if step is None else 90.0
    return Progress(job=J7, restart=0, node=N1, step=step, stepped=stepped)


def doing(what: Doing, *, ranks: int = 8) -> StepSight:
    group = RankGroup(doing=what, ranks=ranks, for_s=60.0, rank=0)
    return StepSight(job=J7, step="0", node=N1, step_s=900.0, groups=(group,))


async def told(bench: HubBench, step: int) -> None:
    await comes_true(f"step {step}", lambda: [one.step for one in bench.view().progress] == [step])


def test_a_jobs_progress_is_in_the_view_with_times_of_the_heads_clock() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            bench.clock.at = 3000.0
            await channel.send(progress_frame([at_step(5)], 100.0))
            await told(bench, 5)
            (found,) = bench.view().progress
            assert (found.job, found.node, found.stepped, found.at) == (J7, N1, 2990.0, 3000.0)

    asyncio.run(story())


def test_a_first_step_rings_and_no_other_step_does() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            rings = bench.rings
            await channel.send(progress_frame([at_step(1)], 100.0))
            await told(bench, 1)
            assert bench.rings == rings + 1
            await channel.send(progress_frame([at_step(2)], 100.0))
            await told(bench, 2)
            assert bench.rings == rings + 1
            await channel.send(progress_frame([], 100.0))
            await comes_true("it is gone", lambda: not bench.view().progress)
            assert bench.rings == rings + 2

    asyncio.run(story())


def test_ranks_that_do_no_work_ring_and_that_they_work_again_and_nothing_else_of_them() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            rings = bench.rings
            for what, rung in ((Doing.WORKS, 0), (Doing.BUSY, 0), (Doing.SPINS, 1), (Doing.WORKS, 2), (Doing.BUSY, 2)):
                await channel.send(sight_frame([doing(what)]))
                await comes_true(f"{what}", lambda what=what: sees(bench) == [what])  # type: ignore[misc]
                assert bench.rings == rings + rung

    asyncio.run(story())


def sees(bench: HubBench) -> list[Doing]:
    return [group.doing for step in bench.view().sights for group in step.groups]


def an_order(name: str = "7-0-5") -> CollectStacks:
    why = Why(rule="job.hang", text="it stands still")
    nodes = frozenset({N1, NodeName("n9")})
    return CollectStacks(key=Key("k"), why=why, job=J7, uid=1000, nodes=nodes, name=name, signal="USR1")


def test_the_order_to_keep_stacks_reaches_the_agents_it_names() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            bench.hub.order(an_order())
            order = stacks_of(await channel.receive(), N1)
            assert (order.job, order.name, order.signal) == (J7, "7-0-5", "USR1")
            with pytest.raises(Permanent):
                bench.hub.order(an_order("../../etc"))

    asyncio.run(story())


def test_a_bundle_counts_when_its_last_piece_is_here() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            first, last = bundle_frames("7-0-5", "x" * 20_000)
            await channel.send(first)
            await channel.send(progress_frame([at_step(1)], 100.0))
            await told(bench, 1)
            assert bench.view().bundles == ()
            await channel.send(last)
            await comes_true("it is told", lambda: bench.view().bundles == ("7-0-5",))

    asyncio.run(story())
