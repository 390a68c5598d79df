"""A node whose backup failed waits for a person: asking for the same again tries it again."""

from steward.model.action import BackUpNode
from steward.model.group import Goal, GroupStatus
from steward.model.ids import Key
from steward.model.node import Reason
from steward.model.order import DeleteCluster, NodeRefusal, NodeWish, RefusalKind
from steward.model.slot import Hitch, Purpose, SlotStep
from steward.policy.plan import plan
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.orders import after, carried, deletion, refused, touching, with_rules
from tests.builders.picture import T0, n

NODE = n("workers-2")
GONE = DeleteCluster(who="ann", cluster="ml-cluster")


def stuck(purpose: Purpose = Purpose.LEAVE) -> ApiPicture:
    picture = with_rules(an_api_cluster(workers=3), backup=("/sbin/save", "%n")).slot(
        NODE, step=SlotStep.BACKUP, purpose=purpose, hitch=Hitch.OTHER, trouble="backup failed: disk full"
    )
    mark = f"steward:scale:leave:{picture.memory.slots[NODE].logical}"
    picture = picture.node(NODE, flags=frozenset({"DRAIN"}), reason=Reason(text=mark, at=T0))
    key = Key(f"backup:{picture.memory.slots[NODE].token}:box/{NODE}:0")
    return picture.change_group("workers", goal=Goal(target=2)).see(failures={key: "disk full"})


def backups(picture: ApiPicture) -> int:
    actions = plan(picture.seen, picture.want, picture.memory, T0).actions
    return sum(isinstance(action, BackUpNode) for action in actions)


def test_nothing_is_backed_up_again_by_itself() -> None:
    assert backups(stuck()) == 0


def test_asking_for_the_deletion_again_backs_the_node_up_again() -> None:
    picture = after(deletion(NODE), stuck())
    assert backups(picture) == 1
    assert picture.memory.slots[NODE].purpose is Purpose.LEAVE


def test_asking_again_does_not_make_the_group_smaller_again() -> None:
    done = carried(deletion(NODE), stuck())
    assert done.memory.groups["workers"].goal == Goal(target=2)
    assert done.memory.operations == {}


def test_a_node_that_leaves_and_is_not_stuck_is_refused() -> None:
    kind, text = refused(deletion(NODE), stuck().slot(NODE, trouble=""))
    assert kind is RefusalKind.VALIDATION
    assert "deleted already" in text


def test_a_replacement_that_is_stuck_is_asked_for_again_likewise() -> None:
    assert backups(after(touching(NodeWish.REPLACE, NODE), stuck(Purpose.RENEW))) == 1
    [line] = carried(touching(NodeWish.REBOOT, NODE), stuck(Purpose.RENEW)).answer.nodes
    assert line.refused is NodeRefusal.BAD_STATUS


def test_a_node_that_is_stuck_in_a_replacement_can_be_deleted_instead() -> None:
    picture = after(deletion(NODE), stuck(Purpose.RENEW))
    memory = picture.memory
    assert backups(picture) == 1
    assert memory.slots[NODE].purpose is Purpose.LEAVE
    assert memory.groups["workers"].goal == Goal(target=1)


def test_a_node_of_a_group_that_goes_can_be_asked_for_again() -> None:
    assert backups(after(deletion(NODE), stuck().change_group("workers", status=GroupStatus.DELETING))) == 1


def test_deleting_the_cluster_again_tries_again_what_failed() -> None:
    going = after(GONE, stuck())
    assert backups(after(GONE, going)) == 1
    assert refused(GONE, after(GONE, going))[0] is RefusalKind.CONFLICT
