"""Without a fault in its reach a failure is Slurm's alone: whatever the job, its steps and the faults beside it are."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from steward.model.action import AnswerAsk, RequeueJob
from steward.model.ask import Answer, AskKind
from steward.model.ids import AskId, JobId, NodeName
from steward.model.job import JobState
from steward.model.node_names import fold
from steward.model.resume import Decision
from tests.builders.picture import Picture, a_cluster

ALL = tuple(NodeName(f"n{i}") for i in range(1, 7))
OWN = 7 << 8


@dataclass(frozen=True, slots=True)
class Case:
    """A job on the first `size` nodes, of which `dead` dies `wait_s` before what runs on `used` ends by itself."""

    size: int
    used: frozenset[NodeName]
    dead: NodeName
    wait_s: float
    survives: bool
    """A step on all nodes was hit, and runs again, before that."""
    excised: bool

    @property
    def held(self) -> tuple[NodeName, ...]:
        return ALL[: self.size]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = draw(st.integers(2, 5))
    dead = draw(st.sampled_from(ALL[1:]))
    used = draw(st.frozensets(st.sampled_from(ALL[:size]), min_size=1))
    excised = dead in ALL[:size] and draw(st.booleans())
    survives = excised and draw(st.booleans())
    return Case(size, used, dead, draw(st.floats(0.2, 200)), survives, excised)


def story(case: Case) -> Picture:
    picture = a_cluster().job(on=tuple(map(str, case.held))).opted_in()
    words = tuple(replace(word, has_steps=True) for word in picture.seen.opted_in)
    picture = picture.see(opted_in=words).then(100)
    if case.survives:
        picture = picture.ask(AskKind.STEP, node="n1", nodes=fold(case.held), age=90).then()
    dead = picture.lost(case.dead).then(0.1).marked(case.dead)
    if case.excised:
        dead = dead.change_job(nodes=frozenset(case.held) - {case.dead})
    return dead.then(0.1).see(asks=()).then(case.wait_s)


def failed(picture: Picture, kind: AskKind, case: Case) -> Picture:
    nodes, age = (fold(case.used), int(case.wait_s) + 50) if kind is AskKind.STEP else ("", None)
    asked = picture.ask(kind, node="n1", nodes=nodes, age=age, status=OWN, step="9")
    asked = asked.see(asks=tuple(replace(ask, id=AskId("later")) for ask in asked.seen.asks))
    return asked.then(0.1).checked(*map(str, ALL)).after(7.0)


def rulings(picture: Picture) -> set[Decision]:
    acts = picture.plan().actions
    told = {Decision(a.answer.value) for a in acts if isinstance(a, AnswerAsk)}
    return told | {Decision.REQUEUE for a in acts if isinstance(a, RequeueJob)}


@given(cases())
def test_a_scripts_own_failure_ends_the_job_whatever_died_beside_its_host(case: Case) -> None:
    told = failed(story(case), AskKind.BATCH, case)
    assert [a.answer for a in told.plan().actions if isinstance(a, AnswerAsk)] == [Answer.STOP]
    over = told.then(0.1).see(asks=()).change_job(state=JobState.FAILED, ended=told.now, exit_status=OWN)
    for _ in range(8):
        assert rulings(over) == set()
        over = over.then(60.0)
    assert over.memory.jobs[JobId(7)].resumes == int(case.survives)


@given(cases())
def test_a_steps_own_failure_is_its_scripts_matter_unless_it_had_the_node(case: Case) -> None:
    told = rulings(failed(story(case), AskKind.STEP, case))
    if case.dead not in case.used:
        assert told == {Decision.STOP}
    elif not case.excised or case.wait_s < 30:
        assert told != {Decision.STOP}
