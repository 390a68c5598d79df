"""What an older Steward kept as notes stands on the records."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.older import adopted
from steward.adapters.store.sql import SqlStore
from steward.model.case import Marking, Step
from steward.model.group import GivenUp, Goal, Group, GroupStatus, Role, Rollout, RolloutState, Version
from steward.model.ids import AskId, CaseId, InstanceId, JobId
from steward.model.memory import AskMemory, HeadMemory, Memory, NodeMemory, Stands, Stray
from steward.model.resume import Attempt, Bystander, Decision, JobMemory, Leaving, TakenOut
from steward.model.resume_mode import ResumeMode
from steward.model.slot import SlotStep
from steward.model.why import Why
from tests.builders.capacity import a_slot_at
from tests.builders.deep import a_run
from tests.builders.picture import n
from tests.contract.test_store_port import CASE

SLOT = replace(next(iter(a_slot_at(SlotStep.END).memory.slots.values())), instance=InstanceId("i-1"))
RUN = a_run("n1", id="d7", tries=1)
UPDATE = Rollout(
    state=RolloutState.IN_PROGRESS, wanted=Version(serial=7), previous=Version(serial=5), started=1.0, failures=1
)
GROUP = Group(
    name="workers",
    role=Role.COMPUTE,
    types=("a",),
    goal=Goal(target=1),
    status=GroupStatus.SYSTEM_UPDATING,
    created=1.0,
    rollout=UPDATE,
)
NOTES = {
    f"shown:{CASE.id}": 10.0,
    f"unmarked:{CASE.id}": 20.0,
    f"on-disk:{CASE.id}": 30.0,
    f"under:{CASE.id}:1700000000": 5.0,
    f"under:{CASE.id}:1700000100": 15.0,
    "missing:i-1": 40.0,
    f"over:{SLOT.token}": 50.0,
    f"saved:{SLOT.logical}": 60.0,
    "deep-free:d7-1": 70.0,
    "deep-over:d7-1": 80.0,
}
JOB = JobMemory(
    id=JobId(7),
    uid=1000,
    mode=ResumeMode(text="1", on=True),
    opted_at=1.0,
    restarts=2,
    excised=frozenset({n("n3")}),
    attempts=(Attempt(decided_for="a1", decision=Decision.RETRY, why=Why(rule="r", text="t"), at=95.0),),
)
JOB_NOTES = {
    "completing:7:2": 91.0,
    "over:7:2": 90.0,
    "clean:7:3": 92.0,
    "taken:7:2:n3": 93.0,
    "unexcludable:7:2": 97.0,
}
ASK_NOTES = {"ask:a1": 94.0, "judged:a1": 95.0, "ask:n1-7.0.0.1000": 96.0}
OTHER_JOB_NOTES = {"no:8:99.0": 130.0, "no:9:None": 131.0, "clean:9:1": 132.0, "clean:10:2": 133.0, "clean:7:0": 134.0}
HEAD_NOTES = {"marks:looked": 110.0, "marks:steady": 111.0, "ends:looked": 112.0}
ASKED_A_PERSON = {"ask:c7-6553f100:reset_gpu": 98.0}
NODE_NOTES = {
    "away:n1": 100.0,
    "back:n2": 101.0,
    "lost:n2": 102.0,
    "unanswered:n3": 103.0,
    "settling:n3:gpu.ecc": 104.0,
    "excluded:1000:n3": 105.0,
    "excluded:1001:n3": 106.0,
}
GROUP_NOTES = {
    "bringup:workers:abc123:s1-workers-1-0": 120.0,
    "rolled:workers": 121.0,
    "rollout:7:InProgress:s1-workers-1-0:script:2": 122.0,
    "rollout:6:InProgress:s1-workers-1-0:script:1": 123.0,
    "ended:c9": 124.0,
    "orphan:i-8": 125.0,
    "late:i-9": 126.0,
    "record:n3": 127.0,
}
TOLD_OF_A_MARK = {"orphan:n1:steward:c7:disk": 128.0}
OTHERS = {"over:7:0": 1.0, "missing:i-2": 2.0, "deep-free:d7-0": 3.0, "under:c10:1700000000": 4.0}
MEMORY = Memory(
    cases={CASE.id: CASE},
    slots={SLOT.node: SLOT},
    deeps={RUN.id: RUN},
    jobs={JOB.id: JOB},
    groups={GROUP.name: GROUP},
    noted={
        **NOTES,
        **JOB_NOTES,
        **NODE_NOTES,
        **GROUP_NOTES,
        **ASK_NOTES,
        **HEAD_NOTES,
        **OTHER_JOB_NOTES,
        **ASKED_A_PERSON,
        **TOLD_OF_A_MARK,
        **OTHERS,
    },
)


def test_notes_of_an_older_head_stand_on_their_records() -> None:
    found = adopted(MEMORY)
    marking = Marking(shown=10.0, gone=20.0, under=(1_700_000_000, 1_700_000_100), on_disk=True)
    assert found.cases[CASE.id] == replace(CASE, marking=marking)
    assert found.slots[SLOT.node] == replace(SLOT, missing=40.0, over=50.0, saved=True)
    assert found.deeps[RUN.id] == replace(RUN, free=70.0, job_over=80.0)


def test_notes_of_jobs_stand_on_their_memory() -> None:
    leaving = Leaving(restart=2, since=90.0, clean=92.0)
    taken_out = (TakenOut(node=n("n3"), at=93.0),)
    attempts = (replace(JOB.attempts[0], failed_at=94.0),)
    job = replace(JOB, leaving=leaving, taken_out=taken_out, attempts=attempts, unexcludable=2)
    assert adopted(MEMORY).jobs == {JOB.id: job}


def test_jobs_that_are_not_to_be_resumed_have_records() -> None:
    """Those of a job that is are of a run that another one followed."""
    assert adopted(MEMORY).bystanders == {
        JobId(8): Bystander(since=130.0, submitted=99.0, refused=True),
        JobId(9): Bystander(since=131.0, refused=True, leaving=Leaving(restart=1, clean=132.0)),
        JobId(10): Bystander(since=133.0, leaving=Leaving(restart=2, clean=133.0)),
    }


def test_shims_that_wait_and_the_looks_of_the_head_have_records() -> None:
    found = adopted(MEMORY)
    assert found.asks == {AskId("a1"): AskMemory(at=94.0, judged=95.0), AskId("n1-7.0.0.1000"): AskMemory(at=96.0)}
    assert found.head == HeadMemory(marks=110.0, marks_steady=111.0, ends=112.0)


def test_notes_of_nodes_stand_on_their_memory() -> None:
    settling = Stands(check="gpu.ecc", since=104.0)
    assert adopted(MEMORY).nodes == {
        n("n1"): NodeMemory(away_since=100.0),
        n("n2"): NodeMemory(back_at=101.0, lost_at=102.0),
        n("n3"): NodeMemory(
            silent_since=103.0, settling=settling, left_at=127.0, excluded_by={1000: 105.0, 1001: 106.0}
        ),
    }


def test_where_an_older_head_came_back_for_a_while_the_later_time_counts() -> None:
    """A time too early would hasten what waits for it."""
    nodes = {
        n("n1"): NodeMemory(away_since=99.0),
        n("n2"): NodeMemory(back_at=102.0, lost_at=90.0),
        n("n3"): NodeMemory(silent_since=200.0, settling=Stands(check="disk", since=90.0), excluded_by={1000: 1.0}),
    }
    settling = Stands(check="gpu.ecc", since=104.0)
    assert adopted(replace(MEMORY, nodes=nodes)).nodes == {
        n("n1"): NodeMemory(away_since=100.0),
        n("n2"): NodeMemory(back_at=102.0, lost_at=102.0),
        n("n3"): NodeMemory(
            silent_since=200.0, settling=settling, left_at=127.0, excluded_by={1000: 105.0, 1001: 106.0}
        ),
    }


def test_notes_of_groups_and_their_machines_stand_on_records() -> None:
    """A failure that the update counted must not count again."""
    found = adopted(MEMORY)
    rollout = replace(UPDATE, counted=frozenset({"s1-workers-1-0:script:2"}))
    given_up = (GivenUp(token="s1-workers-1-0", recipe="abc123", at=120.0),)
    assert found.groups == {"workers": replace(GROUP, rollout=rollout, given_up=given_up)}
    assert found.ended == {"c9": 124.0}
    assert found.strays == {
        InstanceId("i-8"): Stray(orphan=125.0),
        InstanceId("i-9"): Stray(late=126.0),
    }


def test_a_note_is_moved_once_and_those_of_other_records_stay() -> None:
    found = adopted(MEMORY)
    assert found.noted == {**ASKED_A_PERSON, **TOLD_OF_A_MARK, **OTHERS}
    assert adopted(found) is found


def test_a_closed_case_asks_for_none() -> None:
    closed = replace(CASE, id=CaseId("c10"), step=Step.CLOSED)
    assert adopted(replace(MEMORY, cases={closed.id: closed})).cases == {closed.id: closed}


def test_after_the_first_commit_the_store_has_the_records_and_no_such_note(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "steward.db")
    SqlStore(open_engine(url)).commit(MEMORY, [], [])
    store = SqlStore(open_engine(url))
    loaded = store.load()
    store.commit(loaded, [], [])
    with closing(sqlite3.connect(tmp_path / "steward.db")) as rows:
        noted = {json.loads(key) for (key,) in rows.execute("SELECT key FROM memory WHERE section = 'noted'")}
    assert noted == {**ASKED_A_PERSON, **TOLD_OF_A_MARK, **OTHERS}.keys()
    assert SqlStore(open_engine(url)).load() == loaded == adopted(MEMORY)
