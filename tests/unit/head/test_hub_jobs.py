"""What agents tell the hub of opted-in jobs that run, and what it tells them."""

import asyncio
from dataclasses import replace

from steward.adapters.wire.job_messages import ask_frame, exits_frame, facts_of, facts_wanted_frame
from steward.adapters.wire.messages import opted_frame
from steward.model.ask import Answer, Ask, AskKind, OptedIn
from steward.model.ids import AskId, BootId, JobId, NodeName
from steward.model.job_report import ResumeFacts, TaskExit
from steward.model.resume_mode import ResumeMode, SiteDefault
from tests.fakes.hub_bench import a_hub, hello
from tests.fakes.until import comes_true

DEFAULT = SiteDefault(partition="gpu", mode=ResumeMode.parse("1,max=3"))
FACTS = ResumeFacts(uid=1000, resumes=2, reason="n3 died")
AN_ASK = Ask(
    id=AskId("a-1"),
    kind=AskKind.STEP,
    job=JobId(7),
    step="0",
    node=NodeName("n1"),
    uid=1000,
    mode=ResumeMode.parse("1"),
    attempt=1,
    restart=0,
    status=9,
    at=100.0,
)


def an_exit(task: int) -> TaskExit:
    return TaskExit(job=JobId(7), restart=0, step="0", node=NodeName("n1"), task=task, status=9, at=100.0)


def test_failed_tasks_are_in_the_view_with_times_of_the_heads_clock() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            await channel.send(exits_frame((an_exit(1),), now=103.0))
            await comes_true("it is seen", lambda: bench.view().exits)
            (seen,) = bench.view().exits
            assert (seen.task, seen.status, seen.at) == (1, 9, bench.clock.at - 3.0)

    asyncio.run(story())


def test_failed_tasks_wake_the_cycle_only_while_a_shim_of_their_job_waits() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            rings = bench.rings
            await channel.send(exits_frame((an_exit(1),), now=103.0))
            await comes_true("it is seen", lambda: bench.view().exits)
            assert bench.rings == rings
            await channel.send(ask_frame(AN_ASK))
            await comes_true("it is asked", lambda: bench.hub.asks())
            rings = bench.rings
            await channel.send(exits_frame((an_exit(2),), now=103.0))
            await comes_true("the cycle is woken", lambda: bench.rings > rings)

    asyncio.run(story())


def test_what_is_told_again_on_a_new_connection_is_no_news_and_only_the_last_are_kept() -> None:
    async def story() -> None:
        async with a_hub() as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            await channel.send(exits_frame((an_exit(1),), now=100.0))
            await comes_true("it is seen", lambda: bench.view().exits)
            first = bench.view().exits
            bench.clock.at += 50.0
            again, _ = await bench.connect()
            await again.send(exits_frame((an_exit(1), an_exit(2)), now=160.0))
            await comes_true("the new one is seen", lambda: len(bench.view().exits) == 2)
            assert bench.view().exits[0] == first[0]
            for begin in (3, 40):
                await again.send(exits_frame(map(an_exit, range(begin, begin + 37)), now=160.0))
            await comes_true("the last ones are kept", lambda: bench.view().exits[-1].task == 76)
            assert len(bench.view().exits) == 64

    asyncio.run(story())


def test_where_a_step_runs_again_its_past_is_told_with_the_answer() -> None:
    async def story() -> None:
        nodes = {NodeName("n1"), NodeName("n2"), NodeName("n3")}
        async with a_hub(facts=lambda job: FACTS, nodes_of=lambda job: nodes) as bench:
            channels = {node: (await bench.connect(hello(node, f"i-{node}")))[0] for node in ("n1", "n2")}
            for node in channels:
                await bench.until_connected(node)
            await channels["n1"].send(ask_frame(AN_ASK))
            await comes_true("it is asked", lambda: bench.hub.asks())
            bench.hub.answer(AskId("a-1"), Answer.RETRY, frozenset({NodeName("n3")}))
            assert (await channels["n1"].receive())["t"] == "answer"
            for channel in channels.values():
                assert facts_of(await channel.receive()) == (7, FACTS)

    asyncio.run(story())


def test_a_node_of_a_job_is_told_its_past_at_once() -> None:
    async def story() -> None:
        async with a_hub(facts=lambda job: FACTS, nodes_of=lambda job: {NodeName("n1")}) as bench:
            channel, _ = await bench.connect()
            await channel.send(facts_wanted_frame(JobId(7)))
            assert facts_of(await channel.receive()) == (7, FACTS)

    asyncio.run(story())


def test_a_node_that_has_not_the_job_is_told_nothing_of_its_past() -> None:
    async def story() -> None:
        async with a_hub(facts=lambda job: FACTS, nodes_of=lambda job: {NodeName("n2")}) as bench:
            channel, _ = await bench.connect()
            await channel.send(facts_wanted_frame(JobId(7)))
            assert facts_of(await channel.receive()) == (7, None)

    asyncio.run(story())


def test_a_question_that_comes_before_the_picture_waits_for_it_and_wakes_the_cycle() -> None:
    async def story() -> None:
        wanted = False

        def nodes_of(job: JobId) -> set[NodeName]:
            """As the picture that the woken cycle takes shows it."""
            return {NodeName("n1")} if wanted and bench.rings > rings else set()

        async with a_hub(facts=lambda job: FACTS, nodes_of=nodes_of) as bench:
            channel, _ = await bench.connect()
            await bench.until_connected()
            rings, wanted = bench.rings, True
            await channel.send(facts_wanted_frame(JobId(7)))
            assert facts_of(await channel.receive()) == (7, FACTS)

    asyncio.run(story())


def test_every_agent_is_told_the_sites_defaults_when_it_connects() -> None:
    async def story() -> None:
        async with a_hub(defaults=(DEFAULT,)) as bench:
            _, terms = await bench.connect(hello("n2"))
            assert terms.defaults == (DEFAULT,)

    asyncio.run(story())


def test_in_which_boot_a_script_began_is_known_from_its_node_whatever_it_says_in_its_next_boot() -> None:
    def told(*, script: bool) -> OptedIn:
        return OptedIn(job=JobId(7), uid=1000, mode=AN_ASK.mode, restart=0, at=1.0, has_script=script)

    async def story() -> None:
        async with a_hub() as bench:
            await bench.connect(replace(hello(), opted=(told(script=True),)))
            await bench.until_connected()
            began_in = frozenset({(NodeName("n1"), hello().incarnation.boot)})
            assert [one.began_in for one in bench.hub.opted_in()] == [began_in]
            booted = replace(hello(), incarnation=replace(hello().incarnation, boot=BootId("boot-2")))
            channel, _ = await bench.connect(booted)
            await comes_true("it is back", lambda: bench.view().incarnation == booted.incarnation)
            assert [one.began_in for one in bench.hub.opted_in()] == [began_in]
            await channel.send(opted_frame((replace(told(script=False), has_steps=True),)))
            await comes_true("a step is told", lambda: bench.hub.opted_in()[0].has_steps)
            assert [one.began_in for one in bench.hub.opted_in()] == [began_in]
            await channel.send(opted_frame((told(script=True),)))
            await comes_true("its script is told", lambda: bench.hub.opted_in()[0].began_in != began_in)
            assert [one.began_in for one in bench.hub.opted_in()] == [{(NodeName("n1"), BootId("boot-2"))}]

    asyncio.run(story())
