"""Our file of partitions: what is in it, when it is written, and how long a partition stays there."""

from steward.adapters.slurm.include import parse_partitions
from steward.model.action import WritePartitions
from steward.model.capacity_policy import Pool
from steward.model.job import Job, JobState
from steward.model.node import Node, NodeBase
from steward.ports import Permanent
from tests.builders.gates import (
    DOWN,
    GATED,
    SERVING,
    UP,
    decide,
    dev,
    files,
    head,
    kinds,
    regrouped,
    set_gates,
    shown,
    then,
)
from tests.builders.picture import n


def test_a_partition_that_slurm_does_not_have_is_written_into_our_file_closed() -> None:
    plan = decide(head(dev(GATED), state=None, owned=False))

    (text,) = files(plan)
    assert "NodeSet=steward-w Feature=w\n" in text
    assert "PartitionName=dev Nodes=steward-w State=DOWN MaxTime=INFINITE\n" in text
    assert not set_gates(plan)


def test_nodes_of_slurm_conf_are_named_and_others_come_by_their_feature() -> None:
    pools = {"w": Pool(group="w", nodes=(n("n1"), n("n2"), n("n3"), n("n9")))}
    picture = head(dev(GATED), state=None, owned=False, pools=pools)
    nodes = {n(name): Node(name=n(name), base=NodeBase.IDLE) for name in ("n1", "n2", "n7")}
    dynamic = Node(name=n("n3"), base=NodeBase.IDLE, flags=frozenset({"DYNAMIC_NORM"}))
    (text,) = files(decide(picture.see(nodes={**nodes, n("n3"): dynamic})))

    assert "NodeSet=steward-w Feature=w Nodes=n[1-2]\n" in text


def test_words_of_slurm_are_told_once_and_keep_nothing_else_out_of_the_file() -> None:
    groups = (dev(GATED, name="all"), dev(GATED), dev(GATED, name="x", partition="Default"))
    picture = head(*groups, state=None, owned=False)
    plan = decide(picture)

    (text,) = files(plan)
    assert parse_partitions(text).members == {"dev": ("steward-w",)}
    assert kinds(plan).count("gate.reserved") == 2
    assert "gate.reserved" not in kinds(decide(then(picture)))


def test_the_file_always_says_what_we_wish_now() -> None:
    written = shown(then(head(dev(GATED), state=None, owned=False)), DOWN)
    plan = decide(regrouped(written, dev(SERVING)))

    assert "PartitionName=dev Nodes=steward-w State=UP" in files(plan)[0]
    assert set_gates(plan) == [True]
    assert isinstance(plan.actions[0], WritePartitions)
    again = regrouped(shown(then(regrouped(written, dev(SERVING))), UP), dev(GATED))
    assert "State=DOWN" in files(decide(again))[0], "a text that was written before is written again"


def test_the_same_file_is_written_once() -> None:
    written = then(head(dev(GATED), state=None, owned=False))

    assert not decide(written).actions
    assert not decide(shown(written, DOWN)).actions
    assert not decide(shown(then(shown(written, DOWN), 90_000.0), DOWN)).actions


def test_a_file_that_was_refused_is_tried_again_after_a_while() -> None:
    asked = decide(head(dev(GATED), state=None, owned=False))
    key = asked.actions[0].key
    refused = then(head(dev(GATED), state=None, owned=False)).see(failures={key: str(Permanent("no include"))})

    assert not decide(refused).actions
    later = refused.after(600.0)
    assert len(files(decide(later.see(partitions_at=later.now)))) == 1


def test_a_file_that_slurm_does_not_show_is_written_again() -> None:
    lost = shown(then(head(dev(GATED), state=None, owned=False), 600.0), None)

    assert len(files(decide(lost))) == 1


def test_a_partition_of_ours_stays_while_it_has_jobs() -> None:
    written = then(shown(then(head(dev(GATED), state=None, owned=False)), DOWN))
    job = Job(id=1, name="x", state=JobState.PENDING, user_id=0, partition="main,dev")  # type: ignore[arg-type]
    left = regrouped(
        shown(written, DOWN),
    )
    waiting = left.see(jobs={job.id: job})

    assert "PartitionName=dev State=DOWN" in files(decide(waiting))[0]
    gone = shown(then(waiting), DOWN).see(jobs={})
    assert "PartitionName" not in files(decide(gone))[0]
    assert "dev" not in decide(shown(then(gone), None)).memory.gates
