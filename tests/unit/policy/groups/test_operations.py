"""When a wish of scaling is over."""

from steward.model.group import Goal, Operation
from steward.model.slot import SlotStep
from steward.policy.draft import Draft
from steward.policy.groups.goals import finish_operations
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.orders import after, an_update, workers
from tests.builders.picture import T0


def looked(picture: ApiPicture) -> list[Operation]:
    draft = Draft(picture.seen, picture.want, picture.memory, T0 + 9)
    finish_operations(draft)
    return sorted(draft.operations.values(), key=lambda op: op.at)


def test_it_is_over_when_the_group_has_what_was_wished() -> None:
    picture = after(an_update(workers(3)), an_api_cluster(workers=3).change_group("workers", goal=Goal(target=2)))
    [operation] = looked(picture)
    assert operation.finished == T0 + 9


def test_it_goes_on_while_a_node_is_on_its_way_in_or_out() -> None:
    picture = after(an_update(workers(3)), an_api_cluster(workers=3).change_group("workers", goal=Goal(target=2)))
    for step in (SlotStep.WAITING, SlotStep.DRAIN):
        [operation] = looked(picture.slot("workers-3", step=step))
        assert operation.finished is None
    [operation] = looked(after(an_update(workers(2)), an_api_cluster(workers=3)))
    assert operation.finished is None


def test_a_rollback_ends_it() -> None:
    picture = after(an_update(workers(5)), an_api_cluster(workers=3)).change_group("workers", goal=Goal(target=3))
    [operation] = looked(picture)
    assert operation.finished is not None


def test_a_superseded_wish_does_not_wait_for_the_group_any_more() -> None:
    picture = after(an_update(workers(6)), after(an_update(workers(5)), an_api_cluster(workers=3)).see(at=T0 + 1))
    first, second = looked(picture)
    assert (first.superseded, first.finished) == (frozenset({"workers"}), T0 + 1)
    assert second.finished is None


def test_a_group_that_is_gone_has_what_was_wished() -> None:
    picture = after(an_update(workers(5)), an_api_cluster(workers=3))
    groups = {name: group for name, group in picture.memory.groups.items() if name != "workers"}
    [operation] = looked(picture.remember(groups=groups))
    assert operation.finished is not None
