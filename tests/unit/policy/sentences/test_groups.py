"""The same of the sentences about an instance group, its slots and its gate."""

from dataclasses import replace
from typing import Any

import pytest

from steward.model.capacity_policy import Pool
from steward.model.case import CaseStep
from steward.model.group import Goal, Rollout, RolloutState, Version
from steward.model.ids import InstanceId
from steward.model.instance import Instance, InstanceState
from steward.model.node import Reason
from steward.model.observed import Freshness
from steward.model.partition import Gate, Partition, PartitionState
from steward.model.setup import SetupState
from steward.model.slot import Hitch, Purpose, SlotStep
from steward.views.explain import explain_node
from steward.views.explain_group import explain_group
from tests.builders import capacity
from tests.builders.api_cluster import ApiPicture, an_api_cluster
from tests.builders.capacity import NODE, a_slot_at, with_group, with_slot
from tests.builders.orders import after, an_update, workers
from tests.builders.picture import T0, Picture, n
from tests.builders.sentences import ROOT, Case, Row, lacking
from tests.builders.want import but
from tests.unit.policy.groups.test_slot_cases import repaired
from tests.unit.policy.guards import test_bring_up as bring_up
from tests.unit.policy.views.test_explain_group import gated

SERVING = SlotStep.SERVING


def said(what: Any) -> str:
    """All that is said of the group `workers` and its first node, before and after what is decided now."""
    if isinstance(what, str):
        return what
    if isinstance(what, ApiPicture):
        return told(what, what.memory, T0)
    decided = what.plan()
    events = [*(str(event.text) for event in decided.events), *(str(action.why) for action in decided.actions)]
    return "\n".join([told(what, what.memory, what.now), told(what, decided.memory, what.now), *events])


def told(picture: Any, memory: Any, now: float) -> str:
    known = (picture.seen, picture.want, memory, now)
    lines = [line for name in _nodes(memory) for line in explain_node(name, *known)]
    return "\n".join([*explain_group("workers", *known), *lines])


def _nodes(memory: Any) -> list[Any]:
    return sorted(slot.node for slot in memory.slots.values() if slot.group == "workers")


def gate(**fields: Any) -> ApiPicture:
    made = Gate(**{"partition": "dev", "open": False, "set_at": T0, "why": "group workers waits", **fields})
    return an_api_cluster().remember(gates={"dev": made})


def shown(picture: ApiPicture) -> ApiPicture:
    return picture.see(partitions={"dev": Partition(name="dev", state=PartitionState.UP)})


def update(state: RolloutState = RolloutState.IN_PROGRESS, **fields: Any) -> ApiPicture:
    wanted = Version(serial=7)
    rollout = Rollout(state=state, wanted=wanted, previous=Version(), started=T0, **fields)
    return an_api_cluster().change_group("workers", rollout=rollout, version=wanted)


def at(step: SlotStep, **slot: Any) -> Picture:
    return a_slot_at(step, slot=slot)


def waiting(**slot: Any) -> Picture:
    """Its machine is not asked for yet."""
    return capacity.nothing_there(at(SlotStep.WAITING, **{"instance": None, **slot}))


def rolled_back() -> ApiPicture:
    return update(RolloutState.ROLLBACK_IN_PROGRESS)


def drained(purpose: Purpose) -> Picture:
    return at(SlotStep.DRAIN, purpose=purpose)


def many_moving(count: int) -> ApiPicture:
    picture = an_api_cluster(count)
    for number in range(1, count + 1):
        picture = picture.slot(f"workers-{number}", step=SlotStep.LAUNCH)
    return picture


GROUPS: list[Row] = [
    (
        "There is no instance group dev.",
        lambda: of_none(),
        lambda: "\n".join(explain_group("workers", *_known(an_api_cluster()))),
    ),
    (
        "2 in service, at least 3 wanted, 3 in all",
        lambda: gated(),
        lambda: of_none(),
    ),
    ("its last good size (2, at least 1)", lambda: gated(), lambda: gated().change_group("workers", good=None)),
    ("nothing, as it is new", lambda: gated().change_group("workers", good=None), lambda: gated()),
    (
        "Its minimum must be there in 2 h; otherwise it goes back to ",
        lambda: gated(),
        lambda: gated().change_group("workers", minimum_since=None),
    ),
    (", Slurm shows it UP", lambda: shown(gate()), lambda: gate()),
    ("Partition dev: Steward keeps no gate there.", lambda: an_api_cluster(), lambda: gate()),
    (
        "Partition dev: it was set by hand 60 s ago; Steward leaves it so.",
        lambda: gate(yielded=T0 - 60),
        lambda: gate(),
    ),
    (
        "Its partition is closed: jobs wait, none starts: group workers waits",
        lambda: gate(),
        lambda: gate(open=True),
    ),
    (
        "Its last software update: Succeeded, over 9 s ago (the software update is done).",
        lambda: update(RolloutState.SUCCEEDED, finished=T0 - 9, why="the software update is done"),
        lambda: update(),
    ),
    ("0 of 3 nodes are brought to the new version", lambda: update(), lambda: rolled_back()),
    ("nodes are brought back to the version before", lambda: rolled_back(), lambda: update()),
    (
        ", 1 bring-up failed (workers-2: exit status 1)",
        lambda: update(failures=1, why="workers-2: exit status 1"),
        lambda: update(),
    ),
    ("; the next batch begins in 60 s", lambda: update(next_batch_at=T0 + 60), lambda: update()),
    (
        "2 of its bring-ups failed within the last hour (3 in a row, or 5, pause the group).",
        lambda: bring_up.given_up(bring_up.coming(), 2, 70.0),
        lambda: bring_up.coming(),
    ),
    ("Paused ", lambda: bring_up.tripped(), lambda: bring_up.given_up(bring_up.coming(), 2)),
    (
        ": to 5 instances.",
        lambda: after(an_update(workers(5)), an_api_cluster()),
        lambda: after(an_update(workers(6)), after(an_update(workers(5)), an_api_cluster())),
    ),
    ("Scaling ", lambda: after(an_update(workers(5)), an_api_cluster()), lambda: an_api_cluster()),
    ("Its software update is InProgress: 0 of 3 nodes are brought ", lambda: update(), lambda: an_api_cluster()),
    (
        "In service but drained, silent or under repair now: workers-2.",
        lambda: an_api_cluster().node("workers-2", flags=frozenset({"DRAIN"}), reason=Reason(text="fan", at=T0)),
        lambda: an_api_cluster(),
    ),
    ("... and 2 more on their way.", lambda: many_moving(22), lambda: many_moving(20)),
]


def of_none() -> str:
    return "\n".join(explain_group("dev", *_known(an_api_cluster())))


def _known(picture: ApiPicture) -> tuple[Any, ...]:
    return picture.seen, picture.want, picture.memory, T0


SLOTS: list[Row] = [
    (", leaves the group", lambda: drained(Purpose.LEAVE), lambda: drained(Purpose.RENEW)),
    (", is made anew", lambda: drained(Purpose.RENEW), lambda: drained(Purpose.LEAVE)),
    (
        "; failed 3 times (capacity): no capacity for ml.p5",
        lambda: gated(),
        lambda: gated(hitch=Hitch.NONE),
    ),
    (
        "; its turn has come",
        lambda: waiting(hitch=Hitch.CAPACITY, tries=1, trouble="none"),
        lambda: waiting(next_try=T0 + 60, hitch=Hitch.CAPACITY),
    ),
    (
        "; its jobs are waited for 10 min more",
        lambda: at(SlotStep.DRAIN, purpose=Purpose.LEAVE, deadline=T0 + 600),
        lambda: at(SlotStep.BACKUP, purpose=Purpose.LEAVE, deadline=T0 + 600),
    ),
    (
        " may still make a machine, which is ended",
        lambda: still_coming(T0 - 5),
        lambda: still_coming(None),
    ),
    ("Slot abcdef012345-1 of group workers: serving for 10 s", lambda: at(SERVING), lambda: waiting()),
    (
        "Next: a machine is asked for in 60 s, in its turn.",
        lambda: waiting(next_try=T0 + 60),
        lambda: at(SlotStep.PROVISION),
    ),
    ("Next: comes into service.", lambda: at(SlotStep.PROVISION), lambda: waiting(next_try=T0 + 60)),
    ("Next: its machine is ended.", lambda: at(SlotStep.BACKUP, purpose=Purpose.LEAVE), lambda: at(SlotStep.VERIFY)),
    ("Waits for its turn to be launched", lambda: waiting(), lambda: at(SlotStep.LAUNCH)),
    ("Waits for the provider to make its machine", lambda: launching(), lambda: waiting(next_try=T0 + 60)),
    ("Waits for its agent to connect", lambda: at(SlotStep.PROVISION).see(agents={}), lambda: launching()),
    (
        "Waits for its lifecycle scripts to end",
        lambda: scripted(SetupState.RUNNING),
        lambda: at(SlotStep.PROVISION).see(agents={}),
    ),
    (
        "Waits for its checks to pass and its slurmd to register",
        lambda: at(SlotStep.VERIFY),
        lambda: at(SlotStep.BACKUP),
    ),
    ("Waits for Slurm to start jobs on it", lambda: at(SlotStep.RETURN), lambda: at(SlotStep.VERIFY)),
    ("Waits for its jobs to be asked to leave", lambda: at(SERVING, purpose=Purpose.LEAVE), lambda: at(SERVING)),
    ("Waits for its jobs to end", lambda: at(SlotStep.DRAIN, purpose=Purpose.LEAVE), lambda: at(SERVING)),
    ("Waits for the backup command to end", lambda: at(SlotStep.BACKUP, purpose=Purpose.LEAVE), lambda: at(SERVING)),
    ("Waits for the provider to end its machine", lambda: at(SlotStep.END, purpose=Purpose.LEAVE), lambda: at(SERVING)),
    (
        "lifecycle scripts did not run successfully: on_create.sh, exit status 1; it failed",
        lambda: scripted(SetupState.FAILED, step="on_create.sh", exit_status=1, why="it failed"),
        lambda: scripted(SetupState.RUNNING),
    ),
    (
        "waits before the next try: no capacity",
        lambda: waiting(next_try=T0 + 60, trouble="no capacity"),
        lambda: waiting(),
    ),
    (
        "waits for the provider: its machines cannot be listed now",
        lambda: waiting().see(provider=Freshness.OLD),
        lambda: waiting(),
    ),
    ("waits for its turn: 0 launches are under way", lambda: at_once(0), lambda: at_once(1)),
    ("paused by breaker bringup:workers (`steward breaker reset bringup:workers`)", bring_up.tripped, waiting),
    ("its agent did not connect in time", lambda: late(SlotStep.PROVISION), lambda: at(SlotStep.PROVISION)),
    ("lifecycle scripts: execution timed out", lambda: late(SlotStep.SETUP), lambda: scripted(SetupState.RUNNING)),
    ("the provider made nothing in time", lambda: late(SlotStep.LAUNCH), lambda: launching()),
    ("its checks were not answered", lambda: late(SlotStep.VERIFY), lambda: at(SlotStep.VERIFY)),
    (
        "its slurmd did not register with Slurm",
        lambda: late(SlotStep.VERIFY).node(NODE, slurmd_started=None, responding=False),
        lambda: at(SlotStep.VERIFY),
    ),
    ("its agent is not connected", lambda: late(SlotStep.VERIFY).see(agents={}), lambda: at(SlotStep.VERIFY)),
    ("its instance is gone", lambda: machine_gone(SERVING), lambda: at(SERVING)),
    (
        "its instance went away before it was ready",
        lambda: machine_gone(SlotStep.PROVISION),
        lambda: at(SlotStep.PROVISION),
    ),
    ("an instance for workers-1 of group workers", lambda: waiting().after(60.0), lambda: at(SERVING)),
    ("group workers replaces workers-1 now", lambda: shrunk(under_repair()), lambda: under_repair()),
    (
        "group workers has 1 slot, its target is 0",
        lambda: shrunk(at(SERVING)),
        lambda: at(SERVING),
    ),
    (
        "its provider takes workers-1 away: spot",
        lambda: interrupted("spot"),
        lambda: interrupted(""),
    ),
    (
        "breaker bringup:workers: closed, its image or its scripts were changed",
        lambda: with_group(bring_up.tripped(), version=Version(serial=9)),
        lambda: bring_up.tripped(),
    ),
    (
        "breaker bringup:workers: closed, the group is gone",
        lambda: without_group(bring_up.tripped()),
        lambda: bring_up.tripped(),
    ),
    (
        "3 bring-ups in a row failed (limit 3), the last one workers-1: its agent did not connect in time; no machine "
        "is asked for until `steward breaker reset bringup:workers`, or until the group's software or scripts are "
        "changed",
        lambda: bring_up.tripped(),
        lambda: bring_up.given_up(bring_up.coming(), 2),
    ),
    ("Slot abcdef012345-1 of group workers: ", lambda: at(SERVING), lambda: of_none()),
    ("Slurm did not take its node back in time", lambda: late(SlotStep.RETURN), lambda: at(SlotStep.RETURN)),
    (
        "workers-1: 12 launches in a row failed, the last one: no answer; this counts as a refusal",
        lambda: launch_failed(11),
        lambda: launch_failed(1),
    ),
    (
        "capacity: its fixed machine does not run; switch it on",
        lambda: of_pool(fixed=True),
        lambda: of_pool(fixed=False),
    ),
    (
        "waits: a machine that the provider does not list runs under its name; have it listed, or end it",
        lambda: of_pool(fixed=False),
        lambda: of_pool(fixed=True),
    ),
    (
        "waits: machine i-9 has its name and does not run; start it, or end it",
        lambda: other_machine(),
        lambda: waiting(),
    ),
    ("waits for the controller group", lambda: beside_controller(SlotStep.LAUNCH), lambda: beside_controller(SERVING)),
    (
        "waits until the agent of the previous machine is gone",
        lambda: at(SlotStep.WAITING, instance=None, launches=1, entered=T0 - 1).see(instances={}, nodes={}),
        lambda: waiting(),
    ),
    ("5 bring-ups failed within an hour (limit 5)", lambda: five_within_an_hour(), lambda: bring_up.tripped()),
]


def launching() -> Picture:
    return capacity.nothing_there(at(SlotStep.LAUNCH, instance=None, launched=T0 - 5))


def still_coming(launched: float | None) -> Picture:
    ending = at(SlotStep.END, purpose=Purpose.LEAVE, instance=None, launched=launched)
    return capacity.asked(ending.see(instances={}), f"launch:abcdef012345-1-0:{T0 - 5:.3f}")


def scripted(state: SetupState, **report: Any) -> Picture:
    picture = with_group(at(SlotStep.SETUP), lifecycle=capacity.SCRIPTS)
    return capacity.reported(picture, "abcdef012345-1-0-0-0", state, **report)


def at_once(count: int) -> Picture:
    return capacity.nothing_there(a_slot_at(SlotStep.WAITING, slot={"instance": None}, launches_at_once=count))


def late(step: SlotStep) -> Picture:
    """Its time for this step is over."""
    made = {"instance": None, "launched": T0 - 99_999} if step is SlotStep.LAUNCH else {}
    picture = at(step, entered=T0 - 99_999, **made)
    if step is SlotStep.LAUNCH:
        return capacity.nothing_there(picture)
    if step is SlotStep.PROVISION:
        return picture.see(agents={})
    return with_group(picture, lifecycle=capacity.SCRIPTS) if step is SlotStep.SETUP else picture


def launch_failed(before: int) -> Picture:
    """The provider called so many launches before this one a passing fault, too."""
    picture = with_slot(launching(), hitch=Hitch.OTHER, tries=before)
    key = f"launch:{capacity.slot(picture, NODE).token}:{T0 - 5:.3f}"
    return capacity.asked(picture, key, "no answer")


def of_pool(*, fixed: bool) -> ApiPicture:
    """workers-3 waits; its agent is connected, and the provider lists nothing."""
    picture = gated(tries=0, hitch=Hitch.NONE, trouble="", next_try=0.0).see(instances={}, provider=Freshness.FRESH)
    pools = {"workers": Pool(group="workers", nodes=(n("workers-3"),), fixed=fixed)}
    return replace(picture, want=replace(picture.want, capacity=but(picture.want.capacity, pools=pools)))


def other_machine() -> Picture:
    made = Instance(id=InstanceId("i-9"), node=n(NODE), state=InstanceState.STOPPED)
    return waiting().see(instances={made.id: made})


def beside_controller(step: SlotStep) -> ApiPicture:
    moving = gated(tries=0, hitch=Hitch.NONE, trouble="", next_try=0.0, instance=None)
    return moving.slot("controller-1", step=step).see(provider=Freshness.FRESH, instances={}, agents={})


def machine_gone(step: SlotStep) -> Picture:
    """Missing in the list for the second time."""
    return at(step, missing=T0 - 100).see(instances={}, agents={}, listed_at=T0)


def under_repair() -> Picture:
    return repaired(at(SERVING), CaseStep.LAUNCH)


def shrunk(picture: Picture) -> Picture:
    return with_group(picture, goal=Goal(target=0))


def interrupted(why: str) -> Picture:
    picture = at(SERVING)
    machine = replace(picture.seen.instances[InstanceId("i-1")], interrupted=why)
    return picture.see(instances={machine.id: machine})


def without_group(picture: Picture) -> Picture:
    return replace(picture, memory=replace(picture.memory, groups={}, slots={}))


def five_within_an_hour() -> Picture:
    picture = bring_up.coming()
    for _ in range(5):
        picture = with_slot(bring_up.given_up(picture, every_s=300.0), served=picture.now)
    return bring_up.given_up(picture)


ROWS = [*GROUPS, *SLOTS]


@pytest.mark.parametrize(("sentence", "true", "false"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_it_is_said_where_it_is_true_and_not_where_it_would_be_false(sentence: str, true: Case, false: Case) -> None:
    assert sentence in said(true())
    assert sentence not in said(false())


_OF_JOBS = "closed_partitions|_too_few|_lack|_OF_A_RUN|elastic_lines|run_lines|_has|_waits_for|_took"
_OF_CASES = "_OF_CASES|of_case|_lacks|_line"


def test_every_sentence_in_the_code_has_its_two_cases() -> None:
    pairs = [(said(true()), said(false())) for _, true, false in ROWS]
    views = [ROOT / "views/explain_group.py", ROOT / "views/awaited.py"]
    groups = [ROOT / f"policy/groups/{name}.py" for name in ("slots", "slot_scene")]
    rooms = [ROOT / "policy/guards/bring_up.py", ROOT / "policy/facts/setup.py", *groups]
    assert lacking([*views, *rooms], f"{_OF_JOBS}|{_OF_CASES}|_unfit", pairs) == []
