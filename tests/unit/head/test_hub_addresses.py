"""Who is root on one node has the cluster's MUNGE key, and can prove to be an agent: that makes him no other node's."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from steward.adapters.wire.frames import Gone
from steward.adapters.wire.messages import report_frame
from steward.head.origin import Origin, Origins
from steward.head.passed import PassedRequests
from steward.model.health import Finding, Outcome, Severity
from steward.model.ids import NodeName
from steward.model.node import Node, NodeBase
from steward.model.setting_types import AddressRule
from steward.ports import PortError
from tests.fakes.hub_bench import HubBench, a_hub, a_machine, hello
from tests.fakes.until import FACT_S, comes_true

HOME, SECOND, ELSEWHERE = "127.0.0.12", "127.0.0.13", "127.0.0.99"
"""Of n1, of n2, and of nobody."""
BAD = Finding(check="disk", outcome=Outcome.FAILED, severity=Severity.FATAL, text="gone")
HOSTS = {"n1": HOME, "n2": SECOND}


def a_node(name: str, address: str, *flags: str) -> Node:
    return Node(name=NodeName(name), base=NodeBase.IDLE, flags=frozenset(flags), address=address)


def resolve(name: str) -> frozenset[str]:
    if name not in HOSTS:
        raise OSError(f"{name} is not known")
    return frozenset({HOSTS[name]})


def known(*nodes: Node) -> Origins:
    origins = Origins(resolve)
    origins.learn({node.name: node for node in nodes}, {})
    return origins


BY_NUMBER = (a_node("n1", HOME), a_node("n2", SECOND))
BY_NAME = (a_node("n1", "n1"), a_node("n2", "n2"))


def tell(story: Callable[[HubBench], Awaitable[None]], *nodes: Node, rule: AddressRule = AddressRule.AUTO) -> None:
    async def run() -> None:
        async with a_hub(origins=known(*nodes), addresses=rule) as bench:
            await story(bench)

    asyncio.run(run())


async def is_heard(bench: HubBench, node: str, at: str, **who: str) -> bool:
    """Whether the head takes what an agent says that speaks as `node` from `at`."""
    try:
        channel, _ = await bench.connect(hello(node, **who), at=at)
        await channel.send(report_frame([BAD], None))
        await channel.beat(sent=1.0)
        await channel.receive()
    except PortError:
        return False
    name = NodeName(node)
    await comes_true("it is heard", lambda: bench.hub.views()[name].findings)
    return True


@pytest.mark.parametrize("nodes", [BY_NUMBER, BY_NAME])
def test_a_node_cannot_speak_as_another_one(nodes: tuple[Node, ...]) -> None:
    async def story(bench: HubBench) -> None:
        await bench.connect(hello("n1"), at=HOME)
        await bench.connect(hello("n2", "i-2"), at=SECOND)
        await bench.until_connected("n2")
        assert not await is_heard(bench, "n2", HOME, instance="i-forged")
        assert bench.view("n2").incarnation == hello("n2", "i-2").incarnation
        assert not bench.view("n2").findings
        assert [(event.kind, event.node) for event in bench.events] == [("agent.refused", "n2")]
        assert f"{HOME} is the address of n1" in bench.events[0].text

    tell(story, *nodes)


@pytest.mark.parametrize(("at", "is_believed"), [(ELSEWHERE, False), (SECOND, True)])
def test_what_an_agent_said_to_another_heads_host_is_not_passed_on_from_there(at: str, *, is_believed: bool) -> None:
    """Any user there may hold the port of a head that does not run; a node that is a head's host is at home there."""
    heads = {"head1": "127.0.0.98", "head2": at}

    async def run() -> None:
        passed = PassedRequests(["head1:6861", "head2:6861"], resolve=lambda name: frozenset({heads[name]}))
        async with a_hub(origins=known(*BY_NAME), passed=passed) as bench:
            assert await is_heard(bench, "n2", at) is is_believed
            assert [event.kind for event in bench.events] == ([] if is_believed else ["agent.refused"])

    asyncio.run(run())


def test_a_node_cannot_speak_as_one_that_is_away_either() -> None:
    async def story(bench: HubBench) -> None:
        await bench.connect(hello("n1"), at=HOME)
        assert not await is_heard(bench, "n2", HOME)
        assert NodeName("n2") not in bench.hub.views()

    tell(story, *BY_NAME, rule=AddressRule.AUTO)


def test_who_is_heard_in_time_keeps_its_name_against_an_address_that_nobody_knows() -> None:
    async def story(bench: HubBench) -> None:
        await bench.connect(hello("n2", "i-2"), at=SECOND)
        await bench.until_connected("n2")
        for _ in range(3):
            assert not await is_heard(bench, "n2", ELSEWHERE, instance="i-2")
        assert [event.kind for event in bench.events] == ["agent.refused"]

    tell(story, *BY_NUMBER)


def test_who_took_a_silent_nodes_name_from_elsewhere_loses_it_to_the_node_at_home() -> None:
    async def story(bench: HubBench) -> None:
        own, _ = await bench.connect(hello("n2", "i-2"), at=SECOND)
        await bench.until_connected("n2")
        own.close()
        await comes_true("it is lost", lambda: not bench.view("n2").connected)
        assert await is_heard(bench, "n2", ELSEWHERE, instance="i-forged")
        assert [event.kind for event in bench.events] == ["agent.moved"]
        assert await is_heard(bench, "n2", SECOND, instance="i-2")
        assert bench.view("n2").incarnation == hello("n2", "i-2").incarnation

    tell(story, *BY_NUMBER)


def test_strictly_an_agent_speaks_from_an_address_of_its_node_only() -> None:
    async def story(bench: HubBench) -> None:
        assert not await is_heard(bench, "n2", ELSEWHERE)
        assert await is_heard(bench, "n2", SECOND)
        assert await is_heard(bench, "new1", ELSEWHERE), "where a node is nobody knows, nobody is refused"

    tell(story, *BY_NUMBER, rule=AddressRule.STRICT)


def test_an_agent_behind_a_second_network_is_heard_and_told_of_by_the_doctor() -> None:
    async def story(bench: HubBench) -> None:
        assert await is_heard(bench, "n1", ELSEWHERE)
        assert await is_heard(bench, "n2", ELSEWHERE)
        assert bench.hub.nodes_at(Origin.STRANGE) == {"n1", "n2"}
        assert bench.events == []

    tell(story, *BY_NUMBER)


def test_nodes_that_share_an_address_are_all_heard() -> None:
    async def story(bench: HubBench) -> None:
        assert await is_heard(bench, "n1", HOME)
        assert await is_heard(bench, "n2", HOME)
        assert bench.hub.nodes_at(Origin.STRANGE) == frozenset()

    tell(story, a_node("n1", HOME), a_node("n2", HOME))


def test_agents_on_the_heads_own_host_are_heard_whatever_slurm_calls_their_address() -> None:
    async def story(bench: HubBench) -> None:
        assert await is_heard(bench, "n1", "127.0.0.1")
        assert await is_heard(bench, "n2", "127.0.0.1")

    tell(story, *BY_NUMBER, rule=AddressRule.STRICT)


def test_a_new_machine_may_have_the_address_of_a_node_that_is_off() -> None:
    async def story(bench: HubBench) -> None:
        assert await is_heard(bench, "n2", HOME)

    tell(story, a_node("n1", HOME, "POWERED_DOWN"), a_node("n2", SECOND))


def test_a_new_machine_is_at_home_where_its_provider_says() -> None:
    async def story(bench: HubBench) -> None:
        machine = a_machine("i-2", "n2", address=ELSEWHERE)
        bench.origins.learn({node.name: node for node in BY_NUMBER}, {machine.id: machine})
        assert await is_heard(bench, "n2", ELSEWHERE, instance="i-2")

    tell(story, *BY_NUMBER, rule=AddressRule.STRICT)


def test_addresses_that_do_not_count_refuse_nobody() -> None:
    async def story(bench: HubBench) -> None:
        await bench.connect(hello("n1"), at=HOME)
        assert await is_heard(bench, "n2", HOME)

    tell(story, *BY_NUMBER, rule=AddressRule.OFF)


def test_an_agent_that_begins_anew_is_heard_at_once() -> None:
    async def story(bench: HubBench) -> None:
        old, _ = await bench.connect(hello("n1"), at=HOME)
        await bench.until_connected("n1")
        assert await is_heard(bench, "n1", HOME)
        with pytest.raises(Gone):
            await old.receive()
        assert bench.events == []

    tell(story, *BY_NUMBER)


def test_a_name_server_that_does_not_answer_keeps_nobody_out() -> None:
    async def story(bench: HubBench) -> None:
        assert await is_heard(bench, "n7", ELSEWHERE)

    tell(story, a_node("n7", "n7"), rule=AddressRule.STRICT)


def test_an_agent_at_home_does_not_wait_for_a_name_server() -> None:
    answers = threading.Event()

    def slow(name: str) -> frozenset[str]:
        answers.wait()
        return frozenset()

    async def run() -> None:
        origins = Origins(slow)
        origins.learn({node.name: node for node in BY_NUMBER}, {})
        async with a_hub(origins=origins) as bench:
            async with asyncio.timeout(FACT_S):
                await bench.connect(hello("n1"), at=HOME)
            answers.set()

    asyncio.run(run())


def test_two_agents_of_one_node_that_take_each_others_connection_are_told_once() -> None:
    async def story(bench: HubBench) -> None:
        for _ in range(4):
            await bench.connect(hello("n1"), at=HOME)
        assert [event.kind for event in bench.events] == [], "a broken connection now and then is none"
        for _ in range(4):
            await bench.connect(hello("n1"), at=HOME)
        await comes_true("it is told", lambda: bool(bench.events))
        assert [(event.kind, event.node) for event in bench.events] == [("agent.twice", "n1")]

    tell(story, *BY_NUMBER)
