"""Heads with one rule broken on purpose: the matrix must turn red."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from steward.model.action import AnswerAsk, LaunchInstance, ReturnNode
from steward.model.agent_action import Action
from steward.model.ask import Answer
from steward.model.desired import Desired
from steward.model.events import Event
from steward.model.ids import CaseId, Key
from steward.model.mark import Mark
from steward.model.memory import Memory
from steward.model.observed import Freshness, Observed
from steward.model.plan import Plan
from steward.policy.plan import plan
from steward.ports import StorePort
from steward.workflows.cycle import Cycle
from tests.chaos.bench import Bench
from tests.chaos.head_ports import PassingStore
from tests.chaos.slurm_port import WHY

Change = Callable[[Plan, Observed], Plan]


@dataclass(slots=True, kw_only=True)
class LateStore(PassingStore):
    """Commits only when what it was about has been done."""

    late: list[tuple[Memory, Sequence[Action], Sequence[Event]]] = field(default_factory=list)

    def commit(self, memory: Memory, intents: Sequence[Action], events: Sequence[Event]) -> None:
        self._flush()
        self.late.append((memory, intents, events))

    def record_outcomes(self, errors: Mapping[Key, str], at: float) -> None:
        self._flush()
        self.inner.record_outcomes(errors, at)

    def _flush(self) -> None:
        while self.late:
            self.inner.commit(*self.late.pop(0))


class ForgetfulStore(PassingStore):
    """A head that starts knows nothing of the one before."""

    def load(self) -> Memory:
        return Memory()


def _with_store(make: Callable[[StorePort], StorePort]) -> Callable[[Bench], Bench]:
    def change(bench: Bench) -> Bench:
        bench.broken_store = make
        before = bench.store.load()
        bench.start()
        bench.store.inner.commit(before, (), ())
        return bench

    return change


def acts_before_it_commits(bench: Bench) -> Bench:
    return _with_store(lambda store: LateStore(inner=store))(bench)


def forgets_its_memory(bench: Bench) -> Bench:
    return _with_store(lambda store: ForgetfulStore(inner=store))(bench)


def launches_without_a_token(bench: Bench) -> Bench:
    bench.provider.forgetful = True
    return bench


class CarelessCycle(Cycle):
    """A cycle that does not see that its clock was set."""

    def _note(self, now: float) -> None:
        return


def goes_on_with_times_of_the_future(bench: Bench) -> Bench:
    bench.make_cycle = CarelessCycle
    bench.start()
    return bench


def takes_an_old_picture_for_fresh(bench: Bench) -> Bench:
    def planner(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
        return plan(replace(seen, slurm=Freshness.FRESH), want, memory, now)

    bench.planner = planner
    return bench


def _decides(change: Change) -> Callable[[Bench], Bench]:
    def applied(bench: Bench) -> Bench:
        def planner(seen: Observed, want: Desired, memory: Memory, now: float) -> Plan:
            return change(plan(seen, want, memory, now), seen)

        bench.planner = planner
        return bench

    return applied


def _without(*kinds: type) -> Change:
    return lambda decided, seen: replace(decided, actions=tuple(a for a in decided.actions if type(a) not in kinds))


def _undrain_all(decided: Plan, seen: Observed) -> Plan:
    mark = Mark(check="agent", action="return", id=CaseId("c0"))
    foreign = [node.name for node in seen.nodes.values() if node.is_foreign]
    undone = tuple(ReturnNode(key=Key(f"return:{n}"), why=WHY, node=n, mark=mark) for n in foreign)
    return replace(decided, actions=decided.actions + undone)


def _always_stop(decided: Plan, seen: Observed) -> Plan:
    told = tuple(replace(a, answer=Answer.STOP) if isinstance(a, AnswerAsk) else a for a in decided.actions)
    return replace(decided, actions=told)


undoes_foreign_drains = _decides(_undrain_all)
never_answers = _decides(_without(AnswerAsk))
always_says_stop = _decides(_always_stop)
never_gives_back = _decides(_without(ReturnNode))
never_launches = _decides(_without(LaunchInstance))
