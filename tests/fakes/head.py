"""A head without threads: the cycle's order of observe, plan, commit, apply, record; it can die between any two."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from steward.model.agent_action import Action
from steward.model.desired import Desired
from steward.model.events import Event
from steward.model.ids import Key
from steward.model.memory import Memory
from steward.model.observed import Observed
from steward.model.plan import Plan
from steward.policy.plan import plan
from steward.workflows.confirm import plan_confirmed
from tests.fakes.eyes import Eyes
from tests.fakes.world import World


class Killed(Exception):
    """kill -9 at a journal point."""


@dataclass(slots=True)
class Store:
    """What survives: the last memory, and of every intent how it ended (None: nobody knows)."""

    memory: Memory = field(default_factory=Memory)
    outcomes: dict[Key, str | None] = field(default_factory=dict)

    def load(self) -> Memory:
        asked = {k: at for k, at in self.memory.asked.items() if self.outcomes.get(k, "") is not None}
        return replace(self.memory, asked=MappingProxyType(asked))

    def commit(self, memory: Memory, intents: tuple[Action, ...]) -> None:
        self.memory = memory
        for action in intents:
            self.outcomes[action.key] = None

    def failures(self) -> dict[str, str]:
        return {key: error for key, error in self.outcomes.items() if error}

    def done(self) -> frozenset[str]:
        return frozenset(
            key for key, error in self.outcomes.items() if error == "" and key.startswith(("backup:", "restore:"))
        )


Watcher = Callable[[Observed, Memory, Plan], None]


@dataclass(slots=True)
class Head:
    """`kill_at` is the journal point (counted over its life) at which it is killed once; `dies` is asked at each but
    after a commit of what is there already, which is the point before it. `watch` sees every plan.
    With `sweep_s` it sees as much of Slurm as a real head on a site so large that it is swept so rarely; without, all
    of it in each cycle."""

    world: World
    want: Desired
    store: Store = field(default_factory=Store)
    memory: Memory | None = None
    kill_at: int | None = None
    dies: Callable[[], bool] | None = None
    point: int = 0
    mishaps: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    done: list[Action] = field(default_factory=list)
    watch: Watcher | None = None
    sweep_s: float | None = None
    eyes: Eyes | None = None

    def run(self, seconds: float, longest_s: float = 1.0) -> None:
        """Cycles at every deadline of the plan and at least every `longest_s`."""
        until = self.world.now + seconds
        while self.world.now < until - 1e-9:
            wake = self.cycle()
            self.world.advance(max(0.1, min(longest_s, (wake or until) - self.world.now, until - self.world.now)))

    def order(self, change: Callable[[Memory], Memory]) -> None:
        """A caller's order, carried out and committed."""
        self.memory = change(self.memory if self.memory is not None else self.store.load())
        self.store.memory = self.memory

    def cycle(self) -> float | None:
        """One cycle; after a kill the next head starts a second later. When to look again."""
        try:
            return self._cycle()
        except Killed:
            self.die()
            self.world.advance(1.0)
            self.world.restart_head()
            return None

    def die(self) -> None:
        """What was not committed is forgotten."""
        self.memory = self.eyes = None

    def _cycle(self) -> float | None:
        memory = self.memory if self.memory is not None else self.store.load()
        failures = MappingProxyType(self.store.failures())
        seen = replace(self.world.seen(), failures=failures, done=self.store.done())
        seen, decided = self._decide(seen, memory)
        if self.watch:
            self.watch(seen, memory, decided)
        self._point()
        is_news = bool(decided.actions) or decided.memory != self.store.memory
        self.store.commit(decided.memory, decided.actions)
        self.memory = decided.memory
        self.events += decided.events
        self._point(is_news=is_news)
        for action in decided.actions:
            self._apply(action)
            if self.eyes is not None:
                self.eyes.acted([action], seen)
        return self.world.now + 0.1 if decided.actions else decided.wake_at

    def _decide(self, seen: Observed, memory: Memory) -> tuple[Observed, Plan]:
        if self.sweep_s is None:
            return seen, plan(seen, self.want, memory, self.world.now)
        self.eyes = self.eyes or Eyes(self.world, self.sweep_s)
        known = self.eyes.look(seen, memory)
        decided = plan_confirmed(
            lambda seen: plan(seen, self.want, memory, self.world.now), lambda plan: plan, known, self.eyes
        )
        return decided.seen, decided.result

    def _apply(self, action: Action) -> None:
        mishap = self.mishaps.pop(0) if self.mishaps else ""
        for error in self._tries(action, mishap):
            self._point()
            self.store.outcomes[action.key] = error
        self.done.append(action)
        self._point()

    def _tries(self, action: Action, mishap: str) -> Iterator[str]:
        """Lost: it reports success, nothing happened. Refused: an error that may pass. Twice: done two times."""
        if mishap == "lost":
            yield ""
        elif mishap == "refused":
            yield "retry: try again"
        else:
            yield self.world.apply(action)
            if mishap == "twice":
                yield self.world.apply(action)

    def _point(self, *, is_news: bool = True) -> None:
        self.point += 1
        if self.point == self.kill_at or (is_news and self.dies is not None and self.dies()):
            raise Killed
