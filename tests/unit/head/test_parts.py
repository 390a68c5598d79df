"""The hub's small parts: deadlines, heartbeats as bytes, and many providers as one."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.wire.frames import pack, unpack
from steward.adapters.wire.handshake import seconds_to_next_beat
from steward.adapters.wire.seal import times
from steward.head.choose import Fleet, make_providers
from steward.head.link import Beat, parse_beat, reply
from steward.head.watch import Wheel
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Slot
from steward.model.settings import parse
from steward.ports import Permanent, Retryable
from tests.fakes.head_ports import FakeProvider
from tests.fakes.slurm import FakeSlurm

TIMES = st.floats(min_value=-1e14, max_value=1e14)


@given(due=st.floats(min_value=0, max_value=100), step=st.floats(min_value=0.01, max_value=5))
def test_the_wheel_gives_a_thing_back_within_a_tick_after_it_is_due_and_once(due: float, step: float) -> None:
    wheel: Wheel[str] = Wheel(0.0)
    wheel.add("thing", due)
    now, came = 0.0, []
    while now < due + 2 * wheel.tick_s + step:
        now += step
        came += [now for _ in wheel.turn(now)]
    assert len(came) == 1
    assert due <= came[0] <= due + 2 * wheel.tick_s + step


@given(sent=TIMES)
def test_a_heartbeat_is_read_as_json_would_read_it(sent: float) -> None:
    for key in ("sent", "lives"):
        asks = key == "sent"
        assert parse_beat(pack({"t": "beat", key: sent, "seal": "0f"})) == Beat(sent, times(sent), "0f", asks)


@given(echo=TIMES, now=TIMES)
def test_the_answer_to_a_heartbeat_is_the_same_as_json(echo: float, now: float) -> None:
    data = reply(times(echo), times(now), "0f")
    assert unpack(data[4:]) == {"t": "beat", "echo": echo, "now": now, "seal": "0f"}
    assert int.from_bytes(data[:4], "big") == len(data) - 4


@pytest.mark.parametrize(
    "body",
    [
        b'{"t":"beat","sent":nan,"seal":"0f"}',
        b'{"t":"beat","sent":1e99,"seal":"0f"}',
        b'{"t":"beat","sent":true,"seal":"0f"}',
        b'{"t":"beat","sent":1.0}',
        b'{"t":"ask"}',
        b"",
    ],
)
def test_anything_else_is_not_taken_for_a_heartbeat(body: bytes) -> None:
    assert parse_beat(len(body).to_bytes(4, "big") + body) is None


def test_two_heartbeats_in_one_piece_are_left_to_the_slow_way() -> None:
    frame = pack({"t": "beat", "sent": 1.0, "seal": "0f"})
    assert parse_beat(frame + frame) is None


@pytest.fixture
def two() -> tuple[Fleet, FakeProvider, FakeProvider]:
    first, second = FakeProvider(), FakeProvider()
    first.gate.set()
    second.gate.set()
    return Fleet({"a": first, "b": second}), first, second


Two = tuple[Fleet, FakeProvider, FakeProvider]


def test_a_launch_goes_to_the_provider_of_the_slots_group(two: Two) -> None:
    fleet, first, second = two
    fleet.launch(Slot(node=NodeName("n1"), group="b"), "t1")
    assert (first.calls, second.calls) == ([], ["launch n1 t1"])


def test_a_group_without_a_provider_is_refused(two: Two) -> None:
    with pytest.raises(Permanent, match="no provider"):
        two[0].launch(Slot(node=NodeName("n1"), group="c"), "t1")


def test_a_group_of_the_api_goes_to_the_provider_of_all_others() -> None:
    own, others = FakeProvider(), FakeProvider()
    others.gate.set()
    fleet = Fleet({"a": own}, others)
    made = fleet.launch(Slot(node=NodeName("workers-1"), group="workers"), "t1")
    fleet.reboot(made.id, "r1")
    assert (own.calls, others.calls) == ([], ["launch workers-1 t1", "reboot i-t1 r1"])


PACKAGE = """
from steward.ports import Permanent

class Machines:
    def __init__(self, zone): self.zone = zone
    def describe(self): return f"machines of acme in {self.zone}"
    def instances(self): return {}

def make(table):
    if "zone" not in table:
        raise Permanent("provider.acme.zone is missing: add it")
    return Machines(table["zone"])
"""
ACME = '[[groups]]\nname="a"\nnodes="n1"\nprovider="acme"\n[provider.acme]\n'


def fleet_of(text: str) -> Fleet | None:
    return make_providers(parse(text, source="steward.toml", env={}), FakeSlurm())


def test_a_package_brings_a_provider_by_its_entry_point(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="provider acme: no package here brings it; there are command, "):
        fleet_of(ACME)
    (tmp_path / "acme_machines.py").write_text(PACKAGE)
    about = tmp_path / "acme_machines-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-machines\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[steward.providers]\nacme = acme_machines:make\n")
    sys.path.insert(0, str(tmp_path))
    try:
        assert (made := fleet_of(ACME + 'zone = "b"')) is not None
        assert made.describe() == "machines of acme in b"
        with pytest.raises(Permanent, match=r"provider\.acme\.zone is missing"):
            fleet_of(ACME)
    finally:
        sys.path.remove(str(tmp_path))


def test_an_instance_that_is_not_listed_yet_is_ended_by_the_provider_that_made_it(two: Two) -> None:
    fleet, first, second = two
    made = fleet.launch(Slot(node=NodeName("n1"), group="b"), "t1")
    del second.machines[made.id]  # as a cloud whose lists lag behind
    fleet.instances()
    fleet.terminate(made.id)
    assert (first.calls, second.calls[-1]) == ([], "terminate i-t1")


def test_an_instance_that_nobody_knows_cannot_be_rebooted(two: Two) -> None:
    with pytest.raises(Permanent, match="no provider lists it"):
        two[0].reboot(InstanceId("i-unknown"), "r1")


def test_an_instance_is_ended_by_the_provider_that_lists_it(two: Two) -> None:
    fleet, first, second = two
    made = fleet.launch(Slot(node=NodeName("n1"), group="b"), "t1")
    fleet.terminate(made.id)
    assert (first.calls, second.calls[-1]) == ([], "terminate i-t1")


def test_an_instance_that_nobody_lists_is_gone_already(two: Two) -> None:
    fleet, first, second = two
    fleet.terminate(InstanceId("i-unknown"))
    assert (first.calls, second.calls) == ([], [])


def test_the_list_is_whole_or_an_error(two: Two) -> None:
    fleet, _, second = two
    fleet.launch(Slot(node=NodeName("n1"), group="a"), "t1")
    assert set(fleet.instances()) == {"i-t1"}
    second.refuse = Retryable("the cloud is away")
    with pytest.raises(Retryable):
        fleet.instances()


@given(wait=st.floats(min_value=0.3, max_value=100), now=st.floats(min_value=0, max_value=2e9))
def test_agents_beat_at_the_same_quarters_of_the_heads_seconds(wait: float, now: float) -> None:
    due = seconds_to_next_beat(wait, now)
    assert wait - 0.25 <= due <= wait
    assert (now + due - wait) * 4 == pytest.approx(round((now + due - wait) * 4), abs=1e-4)


def test_beats_that_are_closer_than_that_stay_as_they_are() -> None:
    assert seconds_to_next_beat(0.05, 12.34) == 0.05
