"""Orders on their way into the cycle and back."""

from dataclasses import replace

import pytest

from steward.model.memory import Memory
from steward.model.order import AddNodes, DeleteCluster, Refusal
from steward.ports import Permanent
from steward.workflows.commands import Commands, PauseOrder
from tests.builders.api_cluster import ApiPicture, an_api_cluster


class Desk:
    """Commands that are carried out as soon as they are given."""

    def __init__(self, picture: ApiPicture) -> None:
        self.picture, self.memory = picture, picture.memory
        self.commands = Commands(self._carry_out)

    def _carry_out(self) -> None:
        self.memory, _ = self.commands.take(self.memory, self.picture.seen, self.picture.want)
        self.commands.committed()


def test_an_order_changes_the_memory_and_is_answered() -> None:
    desk = Desk(an_api_cluster())
    assert desk.commands.give(DeleteCluster(who="root", cluster="ml-cluster")).cluster_id
    assert desk.memory != desk.picture.memory


def test_a_refused_order_changes_nothing_and_the_next_one_is_carried_out() -> None:
    desk = Desk(an_api_cluster())
    with pytest.raises(Refusal):
        desk.commands.give(DeleteCluster(who="root", cluster="other"))
    assert desk.memory == desk.picture.memory
    desk.commands.give(PauseOrder(who="root", why=""))
    assert desk.memory.paused


def test_an_order_at_which_we_fail_does_not_stop_the_cycle() -> None:
    broken = an_api_cluster().remember(client_tokens=None)
    desk = Desk(broken)
    with pytest.raises(Permanent, match="failed at this order"):
        desk.commands.give(AddNodes(who="root", cluster="ml-cluster", wishes=(("workers", 1),), token="t"))
    assert desk.memory == broken.memory
    desk.memory = replace(desk.memory, client_tokens=Memory().client_tokens)
    assert desk.commands.give(AddNodes(who="root", cluster="ml-cluster", wishes=(("workers", 1),))).added
