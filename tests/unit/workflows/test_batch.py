"""Which actions are one call, and in which order calls are made."""

from steward.model.action import CheckNow, DownNode, DrainNode, ForgetNode, NudgeJob, RequeueJob, ReturnNode
from steward.model.agent_action import Action, SetUpNode
from steward.model.ids import JobId, Key, NodeName
from steward.model.mark import Mark
from steward.model.setup import Lifecycle
from steward.model.why import Why
from steward.workflows.apply import batches

WHY = Why(rule="test", text="for the test")
HOLD, LEAVE = Mark(check="setup", action="hold", id="c1"), Mark(check="scale", action="leave", id="c1")


def n(number: int) -> NodeName:
    return NodeName(f"n{number}")


def drain(number: int, mark: Mark = HOLD) -> DrainNode:
    return DrainNode(key=Key(f"drain:{number}"), why=WHY, node=n(number), mark=mark)


def down(number: int, mark: Mark = HOLD) -> DownNode:
    return DownNode(key=Key(f"down:{number}"), why=WHY, node=n(number), mark=mark)


def back(number: int, mark: Mark = HOLD) -> ReturnNode:
    return ReturnNode(key=Key(f"return:{number}"), why=WHY, node=n(number), mark=mark)


def forget(number: int) -> ForgetNode:
    return ForgetNode(key=Key(f"forget:{number}"), why=WHY, node=n(number))


def check(number: int) -> CheckNow:
    return CheckNow(key=Key(f"check:{number}"), why=WHY, nodes=frozenset({n(number)}), budget_s=2.0)


def set_up(number: int) -> SetUpNode:
    order = Lifecycle(source="s3://bucket/", on_create="on_create.sh")
    return SetUpNode(
        key=Key(f"setup:{number}"),
        why=WHY,
        node=n(number),
        token="t",
        lifecycle=order,
        timeout_s=1.0,
        resource_config="",
    )


def requeue(job: int) -> RequeueJob:
    return RequeueJob(key=Key(f"requeue:{job}"), why=WHY, job=JobId(job))


def nudge(job: int) -> NudgeJob:
    return NudgeJob(key=Key(f"nudge:{job}"), why=WHY, job=JobId(job))


def test_a_thousand_drains_between_other_things_are_one_call() -> None:
    actions: list[Action] = [made for i in range(1000) for made in (drain(i), check(i), set_up(i))]

    found = batches(actions)

    assert found[0] == tuple(drain(i) for i in range(1000))
    assert len(found) == 2001


def test_returns_and_deletions_are_one_call_each() -> None:
    assert batches([back(1), forget(2), back(3), forget(4)]) == [(back(1), back(3)), (forget(2), forget(4))]


def test_nodes_are_taken_out_by_one_call_whatever_their_marks_and_given_back_by_one_a_mark() -> None:
    assert batches([drain(1), drain(2, LEAVE), back(3), back(4, LEAVE)]) == [
        (drain(1), drain(2, LEAVE)),
        (back(3),),
        (back(4, LEAVE),),
    ]


def test_neighbouring_nudges_are_one_call_and_pass_nothing() -> None:
    assert batches([nudge(1), nudge(2), drain(1), nudge(3), nudge(4), requeue(5), nudge(6)]) == [
        (nudge(1), nudge(2)),
        (drain(1),),
        (nudge(3), nudge(4)),
        (requeue(5),),
        (nudge(6),),
    ]
    assert batches([drain(1), nudge(1), drain(2)]) == [(drain(1),), (nudge(1),), (drain(2),)]


def test_nothing_is_done_before_something_else_about_the_same_node() -> None:
    assert batches([drain(1), check(2), drain(2)]) == [(drain(1),), (check(2),), (drain(2),)]
    assert batches([drain(1), down(2), drain(2)]) == [(drain(1),), (down(2),), (drain(2),)]


def test_what_comes_after_a_promise_about_a_job_is_not_done_before_it() -> None:
    assert batches([drain(1), requeue(7), drain(2)]) == [(drain(1),), (requeue(7),), (drain(2),)]


def test_nothing_gets_lost_and_nothing_is_done_twice() -> None:
    actions: list[Action] = [drain(1), down(1), back(2), requeue(3), check(2), drain(4), forget(5), drain(1)]

    assert sorted(action.key for batch in batches(actions) for action in batch) == sorted(a.key for a in actions)
