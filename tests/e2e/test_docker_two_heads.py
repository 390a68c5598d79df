"""Two controllers with slurmctld's own backup, a head on each, MariaDB on a third machine: what no local bed has."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from steward.client import Client, HeadError
from steward_bed.bed import Bed, BedError, Overrides
from steward_bed.docker import load_plan
from steward_bed.docker_engine import engine
from steward_bed.docker_faults import in_network
from steward_bed.docker_files import AGENT_PORT, HTTP_PORT
from steward_bed.faults import FaultKind
from steward_bed.layout import DockerLayout
from steward_bed.wait import wait_until
from tests.e2e.capacity import CLUSTER, GROUP, PARTITION, Capacity, wish
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.groups_bed import Access, clear, give_access
from tests.e2e.story import task_script
from tests.e2e.test_capacity_update import BY_TWO, renewed

BACKUP_S = 60.0
"""Until the second slurmctld is in control: SlurmctldTimeout, and that it has read its state."""
READY_S = 60.0
PATIENT: Overrides = {"capacity": {"update_drain_deadline_s": 900.0}}
SAVED_S = 8.0
"""After this time slurmctld has written its state; what a backup that lost a mark means is not told yet (0035)."""
LEASE_S = 8.0
"""Twice as long as a follower waits for a leader that says nothing."""
FIRST, SECOND = f"head:{AGENT_PORT}", f"head2:{AGENT_PORT}"


@dataclass
class Heads:
    """The two controllers' machines of a bed."""

    bed: Bed

    @property
    def _layout(self) -> DockerLayout:
        return DockerLayout(root=self.bed.spec.dir)

    def _address(self, name: str) -> str:
        return load_plan(self._layout).hosts[name]

    def heads(self, at: str = "") -> dict[str, object]:
        """What all heads are, by the one that leads, or as told at one address; raises BedError: not yet."""
        names = [at] if at else ["head", "head2"]
        try:
            client = Client(",".join(f"http://{self._address(name)}:{HTTP_PORT}" for name in names), lambda payload: "")
            found: dict[str, object] = client.object("/v1/status")["heads"]
        except HeadError as error:
            raise BedError(str(error)) from error
        return found

    def leader(self) -> str:
        return str(self.heads()["leader"])

    def is_ready(self) -> bool:
        """Whether the head that follows could take over now."""
        others = self.heads()["others"]
        assert isinstance(others, list)
        return [other["why_not"] for other in others] == [""]

    def await_ready(self) -> None:
        wait_until("the other head could take over", self.is_ready, READY_S)

    def switch_off(self, name: str) -> None:
        with engine() as client:
            client.containers.get(self._layout.machine(name)).kill()

    def switch_on(self, name: str) -> None:
        with engine() as client:
            client.containers.get(self._layout.machine(name)).start()

    def restart(self, name: str) -> None:
        """The head on this machine."""
        with engine() as client:
            client.containers.get(self._layout.machine(name)).exec_run(["systemctl", "restart", "stewardd"])

    def cut(self) -> None:
        """The network between the heads; both reach everybody else."""
        self._route("add")

    def join(self) -> None:
        self._route("del")

    def _route(self, verb: str) -> None:
        for name, other in (("head", "head2"), ("head2", "head")):
            with engine() as client:
                machine = client.containers.get(self._layout.machine(name))
            in_network(machine, 'ip route "$1" blackhole "$2"', verb, self._address(other))


@pytest.fixture(scope="module")
def heads(request: pytest.FixtureRequest) -> Iterator[Heads]:
    for bed in brought_up(request, nodes=4, steward=True, groups=True, heads=2, settings=PATIENT):
        found = Heads(bed)
        found.await_ready()
        give_access(bed)
        found.restart("head2")
        found.await_ready()
        yield found


@pytest.fixture
def capacity(heads: Heads, request: pytest.FixtureRequest) -> Iterator[Capacity]:
    """No cluster yet; the first head leads beside the slurmctld in control."""
    heads.await_ready()
    if heads.leader() != FIRST:
        heads.bed.run(["steward", "head", "handover"])
        wait_until("the first head leads", lambda: heads.leader() == FIRST, READY_S)
        heads.await_ready()
    with own_place(heads.bed, request) as place:
        access = give_access(heads.bed)
        clear(heads.bed, access)
        yield Capacity(bed=heads.bed, dir=place, access=access)


def test_the_first_controllers_machine_dies_with_a_repair_an_update_and_a_held_job_open(
    capacity: Capacity, heads: Heads
) -> None:
    capacity.create(wish(4))
    capacity.wait_group("InService", 4)
    before = capacity.instances()
    calm = capacity.submit(task_script(capacity), "-N1", "-p", PARTITION)
    busy = capacity.wait_state(calm, "RUNNING", 40.0).batch_host
    held = capacity.submit(capacity.script("held.sh", "true\n"), "--hold", "-N1", "-p", PARTITION)
    capacity.api.update_cluster_software(
        ClusterName=CLUSTER, InstanceGroups=[{"InstanceGroupName": GROUP}], DeploymentConfig=BY_TWO
    )
    capacity.wait("only the busy node is left", lambda: renewed(capacity, before) == set(before) - {busy}, 90.0)
    new = capacity.instances()
    assert capacity.group()["SoftwareUpdateStatus"] == "InProgress"
    broken = min(set(before) - {busy})
    began = capacity.hurt(FaultKind.REFUSE_LAUNCH)
    capacity.hurt(FaultKind.KILL_NODE, broken)
    capacity.wait_case(broken, "launch", since=began)

    time.sleep(SAVED_S)
    heads.switch_off("head")
    capacity.wait("the second head leads", _led_by(heads, SECOND), 20.0)
    capacity.wait("the second slurmctld answers", lambda: "is UP" in _ping(heads.bed), BACKUP_S)
    there = Capacity(
        bed=capacity.bed, dir=capacity.dir, access=Access(heads.bed.env["STEWARD_URL"], capacity.access.secret)
    )
    assert there.group()["SoftwareUpdateStatus"] == "InProgress"
    assert (there.job(calm).state, there.job(calm).restarts) == ("RUNNING", 0)
    assert there.job(held).fields["Reason"] == "JobHeldUser"
    there.hurt(FaultKind.ALLOW_LAUNCH)
    there.wait_case(broken, "closed", 90.0, since=began)
    assert len(there.cases(broken, since=began)) == 1
    assert {name for name, made in there.instances().items() if made != new[name]} == {broken}

    _all_ends_well(there, calm, held, before)
    heads.switch_on("head")
    heads.await_ready()


def _all_ends_well(there: Capacity, calm: int, held: int, before: dict[str, str]) -> None:
    """The job that an update waits for, the update, and the job that was held."""
    (there.dir / "go").touch()
    assert there.wait_end(calm).state == "COMPLETED"
    there.wait("the update is done", lambda: there.group()["SoftwareUpdateStatus"] == "Succeeded", 90.0)
    assert renewed(there, before) == set(before)
    there.bed.run(["scontrol", "release", str(held)])
    assert there.wait_end(held, 60.0).state == "COMPLETED"


def test_a_network_that_is_cut_between_the_heads_alone_changes_nothing(capacity: Capacity, heads: Heads) -> None:
    """Who leads is told by the database, which both reach; what is asked of the follower waits for nothing."""
    capacity.create(wish(4))
    capacity.wait_group("InService", 4)
    before, began = heads.heads(), time.time()
    heads.cut()
    try:
        capacity.hurt(FaultKind.KILL_NODE, "n2")
        time.sleep(LEASE_S)
        after = heads.heads("head")
        assert (after["leader"], after["epoch"]) == (before["leader"], before["epoch"])
        with pytest.raises(BedError, match="does not answer here"):
            heads.heads("head2")
        capacity.wait_case("n2", "closed", 90.0, since=began)
    finally:
        heads.join()
    heads.await_ready()
    assert heads.heads("head2")["leader"] == before["leader"]
    assert len(capacity.cases("n2", since=began)) == 1


def _led_by(heads: Heads, name: str) -> Callable[[], bool]:
    return lambda: heads.leader() == name


def _ping(bed: Bed) -> str:
    """Of the second controller's line."""
    lines = bed.run(["scontrol", "ping"], check=False).text.splitlines()
    return next((line for line in lines if "head2" in line), "")
