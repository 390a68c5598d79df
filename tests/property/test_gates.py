"""Gates under whatever people, slurmctld and groups do: ours only, no job, quiet, and in the end as the groups want."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.slurm.include import parse_partitions
from steward.model.action import SetGate, WritePartitions
from steward.model.group import Group, GroupStatus
from steward.model.memory import Memory
from steward.model.partition import Partition, PartitionState
from steward.model.plan import Plan
from steward.policy.draft import Draft
from steward.policy.groups.gate import keep_gates
from tests.builders.capacity import a_group, an_empty_head
from tests.builders.picture import n

LENT, SITE = "lent", "site"
NAMES = ("ours", "more", LENT, SITE)
STATES = st.sampled_from(PartitionState)
STATUSES = st.sampled_from(GroupStatus)
Wanted = dict[str, GroupStatus]

turns = st.lists(
    st.fixed_dictionaries(
        {
            "groups": st.dictionaries(st.sampled_from(NAMES), STATUSES),
            "hand": st.dictionaries(st.sampled_from(NAMES), STATES, max_size=2),
            "restart": st.booleans(),
            "after_s": st.sampled_from([0.0, 0.5, 5.0, 700.0]),
            "look": st.booleans(),
        }
    ),
    max_size=12,
)


class World:
    """Slurm's partitions as files and commands leave them, and the head that keeps gates there."""

    def __init__(self) -> None:
        self.picture = an_empty_head(owned_partitions=frozenset({LENT}), slurm_include=Path("/etc/slurm/steward.conf"))
        self.site = {LENT: PartitionState.UP, SITE: PartitionState.UP}
        self.ours: dict[str, PartitionState] = {}
        self.file: dict[str, str] = {}
        self.loaded = 0.0

    def decide(self) -> Plan:
        draft = Draft(self.picture.seen, self.picture.want, self.picture.memory, self.picture.now)
        keep_gates(draft)
        return draft.plan()

    def want(self, groups: Wanted) -> None:
        made = {name: self._group(name, status) for name, status in groups.items()}
        self.picture = replace(self.picture, memory=replace(self.picture.memory, groups=made))

    def look(self) -> None:
        shown = {
            name: Partition(name=name, state=state, nodes=frozenset({n("n1")}), loaded=self.loaded)
            for name, state in (self.site | self.ours).items()
        }
        self.picture = self.picture.see(partitions=shown, partitions_at=self.picture.now)

    def set(self, name: str, state: PartitionState) -> None:
        table = self.site if name in self.site else self.ours
        if name in table:
            table[name] = state

    def restart(self) -> None:
        self.ours = {name: PartitionState(state) for name, state in self.file.items()}
        self.site = dict.fromkeys(self.site, PartitionState.UP)
        self.loaded = self.picture.now

    def turn(self, after_s: float) -> Plan:
        decided = self.decide()
        for action in decided.actions:
            self._apply(action)
        self._remember(decided.memory, after_s)
        return decided

    def _apply(self, action: object) -> None:
        assert isinstance(action, SetGate | WritePartitions), "no other action, and so none on a job"
        if isinstance(action, SetGate):
            assert action.partition != SITE, "never touches what is not ours"
            self.set(action.partition, PartitionState.UP if action.open else PartitionState.DOWN)
            return
        lines = parse_partitions(action.text)
        assert not lines.states.keys() & self.site.keys(), "slurmctld would not start with a partition twice"
        self.file = lines.states
        self.ours = {name: self.ours.get(name, PartitionState(state)) for name, state in lines.states.items()}

    def _remember(self, memory: Memory, after_s: float) -> None:
        self.picture = replace(self.picture, memory=memory, now=self.picture.now + after_s)

    @staticmethod
    def _group(name: str, status: GroupStatus) -> Group:
        return a_group(f"g-{name}", partition=name, status=status)


def play(world: World, story: list[dict[str, object]]) -> None:
    for turn in story:
        world.want(turn["groups"])  # type: ignore[arg-type]
        for name, state in turn["hand"].items():  # type: ignore[attr-defined]
            world.set(name, state)
        if turn["restart"]:
            world.restart()
        if turn["look"]:
            world.look()
        old = not turn["look"] and world.picture.now - world.picture.seen.partitions_at > 30.0
        decided = world.turn(float(turn["after_s"]))  # type: ignore[arg-type]
        assert not (old and decided.actions), "an old picture decides nothing"


def settle(world: World) -> None:
    for _ in range(6):
        world.look()
        world.turn(60.0)


@given(turns)
def test_a_story_ends_quiet_and_only_ours_was_touched(story: list[dict[str, object]]) -> None:
    world = World()
    play(world, story)
    settle(world)
    world.look()
    again = world.decide()

    assert not again.actions
    assert not again.events


@given(turns, st.dictionaries(st.sampled_from(NAMES), STATUSES))
def test_without_people_gates_end_as_the_groups_want_also_after_a_restart(
    story: list[dict[str, object]], groups: Wanted
) -> None:
    world = World()
    play(world, [{**turn, "hand": {}} for turn in story])
    for restart in (False, True):
        if restart:
            world.restart()
        world.want(groups)
        settle(world)
        for name, status in groups.items():
            if name != SITE:
                closed = status.is_gated or status is GroupStatus.DELETING
                state = (world.site | world.ours)[name]
                assert state is (PartitionState.DOWN if closed else PartitionState.UP), name
        assert world.site[SITE] is PartitionState.UP


@given(turns)
def test_a_restart_of_slurmctld_shows_our_wish_for_what_is_in_our_file(story: list[dict[str, object]]) -> None:
    world = World()
    play(world, [{**turn, "hand": {}} for turn in story])
    settle(world)
    before = dict(world.ours)
    world.restart()

    assert world.ours == before
