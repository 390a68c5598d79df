"""The port for agents of a head that follows, and of one that leads beside another."""

import asyncio

import pytest

from steward.adapters.wire.head_messages import LONGEST_AGAIN_S, FollowerGreeting, HeadFollows
from steward.head.hub import again_after_s
from steward.model.leadership import Leadership
from steward.ports import PortError
from tests.fakes.hub_bench import a_hub

OTHER_LEADS = Leadership(leader="head1:6861", epoch=7)
NOBODY_LEADS = Leadership(epoch=7)
OURS = Leadership(leader="head2:6861", epoch=8, is_mine=True)


@pytest.mark.parametrize("lead", [OTHER_LEADS, NOBODY_LEADS])
def test_a_follower_sends_agents_on_without_a_proof_from_either_side(lead: Leadership) -> None:
    """All agents come at once after the leader's death: that must cost next to nothing."""

    async def story() -> None:
        async with a_hub(leadership=lambda: lead) as bench:
            bench.munged.up = False
            with pytest.raises(HeadFollows) as told:
                await bench.connect()
            assert told.value.word == FollowerGreeting(leader=lead.leader, again_s=told.value.word.again_s)
            assert 0.0 < told.value.word.again_s <= 1.0
            assert not bench.hub.views()

    asyncio.run(story())


@pytest.mark.parametrize("nodes", [0, 10, 4_000, 10_000, 20_000])
def test_the_more_agents_there_are_the_more_rarely_each_asks_a_follower(nodes: int) -> None:
    for has_leader in (True, False):
        waits = [again_after_s(nodes, has_leader=has_leader) for _ in range(50)]
        assert len(set(waits)) == 50, "not all at once"
        assert max(waits) <= min(max(1.0, nodes / 4000), LONGEST_AGAIN_S)
        assert nodes / min(waits) <= 20_000, "connections a second"


def test_a_leader_tells_its_epoch_and_a_head_alone_has_none() -> None:
    async def story() -> None:
        async with a_hub(leadership=lambda: OURS) as bench:
            assert (await bench.connect())[1].epoch == 8
        async with a_hub() as bench:
            assert (await bench.connect())[1].epoch == 0

    asyncio.run(story())


def test_a_head_that_loses_the_lead_in_a_handshake_gives_no_welcome() -> None:
    async def story() -> None:
        asked = iter([OURS])
        async with a_hub(leadership=lambda: next(asked, OTHER_LEADS)) as bench:
            with pytest.raises(PortError):
                await bench.connect()
            assert not bench.hub.views()
            with pytest.raises(HeadFollows):
                await bench.connect()

    asyncio.run(story())
