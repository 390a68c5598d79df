"""`steward notify`: channels, and whether they work."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from click.testing import CliRunner

from steward.cli.notify import notify
from steward.client import Client
from steward.model.events import Level
from steward.model.notify import ChannelKind, ChannelRule, Message
from steward.ports import PortError, Retryable
from steward.workflows.notify import NotifyChannel, NotifyDesk
from tests.builders.cli import steward
from tests.fakes.api_bench import ApiBench, an_api
from tests.fakes.clock import FakeClock


@dataclass
class Answering:
    error: PortError | None = None

    def send(self, message: Message) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class AsRoot:
    """What a command of root's is given; its munged is the bench's."""

    api: ApiBench
    as_json: bool = False

    def client(self) -> Client:
        return self.api.client()


@pytest.fixture
def told() -> Iterator[ApiBench]:
    """A head with a channel that works and one that does not."""
    bench = ApiBench()
    channels = [
        NotifyChannel(
            kind=ChannelKind.WEBHOOK,
            rule=ChannelRule(name=name, levels=frozenset({Level.ERROR}), kinds=("node.",)),
            messenger=Answering(error),
        )
        for name, error in (("ops", None), ("pager", Retryable("no answer within 10 s")))
    ]
    bench.notify = NotifyDesk(
        channels=channels, store=bench.store, clock=FakeClock(), tell=bench.store.log.append, slots={}
    )
    with an_api(bench) as served:
        yield served


def test_every_channel_is_shown_with_what_it_is_sent(told: ApiBench) -> None:
    header, ops, pager = steward(told, "notify", "list").output.splitlines()
    assert header.split()[:2] == ["CHANNEL", "KIND"]
    assert ops.split()[:5] == ["ops", "webhook", "error", "node.", "all"]
    assert pager.startswith("pager")
    found = json.loads(steward(told, "notify", "list", "--json").output)
    assert [one["name"] for one in found] == ["ops", "pager"]


def test_a_test_says_of_each_channel_what_went_wrong(told: ApiBench) -> None:
    answer = told.client().test_channels()
    assert answer["channels"] == {"ops": "", "pager": "no answer within 10 s"}
    assert told.client().test_channels("ops")["channels"] == {"ops": ""}


def test_only_who_may_change_things_sends_a_test(told: ApiBench) -> None:
    with pytest.raises(Exception, match="may not"):
        told.client(uid=1000).test_channels()


def test_without_channels_the_list_and_the_test_say_so(api: ApiBench) -> None:
    assert "No channel is configured" in steward(api, "notify", "list").output
    with pytest.raises(Exception, match="no channel is configured"):
        api.client().test_channels()


def test_the_command_exits_with_1_when_a_channel_failed(told: ApiBench) -> None:
    root = AsRoot(api=told)
    found = CliRunner().invoke(notify, ["test"], obj=root)
    assert found.exit_code == 1
    assert found.output.splitlines() == ["ops: sent", "pager: no answer within 10 s"]
    assert CliRunner().invoke(notify, ["test", "ops"], obj=root).exit_code == 0
