"""The power provider on a real Slurm whose ResumeProgram starts a slurmd and whose SuspendProgram kills it."""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.adapters.providers.power import PowerProvider
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.power import Power, PowerSwitch, power_of
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.settings.clouds import PowerProviderSettings as Settings
from steward.ports import Permanent, ProviderPort, Retryable
from steward_bed.local_setup import free_ports
from tests.contract.cluster import Cluster, running
from tests.contract.installed import missing
from tests.contract.provider import OTHER, SLOT, ProviderContract
from tests.fakes.until import FACT_S

BOTH = pytest.mark.parametrize("up", ["shown", "hidden"], indirect=True)
NODES = (NodeName("n1"), NodeName("n2"))
RESUME = """#!/bin/sh
[ -e {folder}/fail ] && exit 1
while [ -e {folder}/slow ]; do sleep 0.02; done
# Slurm waits for a boot later than its order, and counts both in whole seconds: no machine boots within one.
sleep 1
for node in $(scontrol show hostnames "$1"); do
  # Newer Slurm kills what is in our process group when we end: slurmd begins in another one, before we go on.
  setsid sh -c "slurmd -D -N $node -b </dev/null >>{folder}/$node.out 2>&1 & echo \\$! >{folder}/$node.pid"
done
"""
SUSPEND = """#!/bin/sh
for node in $(scontrol show hostnames "$1"); do kill -9 $(cat {folder}/$node.pid); done
exit 0
"""
POWER = """ResumeProgram={folder}/resume
SuspendProgram={folder}/suspend
SuspendTime=864000
ResumeTimeout=12
SuspendTimeout=1
ResumeRate=0
SuspendRate=0
SlurmctldParameters=power_save_interval=1,power_save_min_interval=0
"""


class Site:
    """A cluster with one plain node and two that the site's programs make."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.slurm = CommandLineSlurm(conf=cluster.env["SLURM_CONF"])

    def provider(self, state: Path, settle_s: float = 60.0) -> PowerProvider:
        """As a head that was just started makes it."""
        switch = PowerSwitch(conf=self.cluster.env["SLURM_CONF"])
        return PowerProvider(Settings(settle_s=settle_s, order_s=4.0), NODES, state, self.slurm.nodes, switch)

    def power(self, node: NodeName) -> Power:
        return power_of(self.slurm.nodes().get(node))

    def wait_power(self, power: Power, node: NodeName = NODES[0]) -> None:
        self.cluster.wait(f"{node} is {power.value}", lambda: self.power(node) is power, FACT_S)

    def all_off(self) -> None:
        """Every power cycle is over, so that the next test begins with powered-down nodes."""
        for how in ("fail", "slow"):
            (self.folder / how).unlink(missing_ok=True)
        quiet_since, end = time.monotonic(), time.monotonic() + FACT_S
        while time.monotonic() < quiet_since + 2.5:  # Slurm may lose an order, and hides what is about to come up
            assert time.monotonic() < end, f"nodes do not stay powered down\n{self.cluster.log_tail()}"
            for node in NODES:
                power = self.power(node)
                if power is not Power.OFF:
                    quiet_since = time.monotonic()
                if power in (Power.ON, Power.COMING):
                    self.cluster.run("scontrol", "update", f"nodename={node}", "state=power_down_force")
            time.sleep(0.3)

    def end(self) -> None:
        for path in self.folder.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError, ValueError):
                os.kill(int(path.read_text()), signal.SIGKILL)


def _programs(folder: Path) -> str:
    for name, text in (("resume", RESUME), ("suspend", SUSPEND)):
        (folder / name).write_text(text.format(folder=folder))
        (folder / name).chmod(0o755)
    host, ports = socket.gethostname().split(".")[0], free_ports(len(NODES))
    lines = [
        f"NodeName={node} NodeAddr=127.0.0.1 NodeHostname={host} Port={port} CPUs=4 RealMemory=500 State=CLOUD\n"
        for node, port in zip(NODES, ports, strict=True)
    ]
    return "".join(lines) + POWER.format(folder=folder)


@pytest.fixture(scope="module")
def up(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Slurm hides powered-down cloud nodes, as here where a test does not ask for both, unless told to show them."""
    if absent := missing():
        pytest.skip(f"no real Slurm: {', '.join(absent)} not installed")
    folder = tmp_path_factory.mktemp("power")
    shown = "PrivateData=cloud\n" if getattr(request, "param", "") == "shown" else ""
    with running(("head",), extra=_programs(folder) + shown) as cluster:
        site = Site(cluster, folder)
        yield site
        site.all_off()  # an order that Slurm still has would be carried out behind our back
        site.end()


@pytest.fixture
def site(up: Site) -> Site:
    up.all_off()
    return up


class Patient:
    """The provider as a caller uses it that tries again while Slurm still powers a node down."""

    def __init__(self, provider: PowerProvider) -> None:
        self._provider = provider
        self.describe = provider.describe
        self.instances = provider.instances
        self.terminate = provider.terminate
        self.reboot = provider.reboot

    def launch(self, slot: Slot, token: str) -> Instance:
        end = time.monotonic() + FACT_S
        while True:
            try:
                return self._provider.launch(slot, token)
            except Retryable:
                assert time.monotonic() < end
                self._provider.instances()
                time.sleep(0.3)


@pytest.fixture
def provider(site: Site, tmp_path: Path) -> ProviderPort:
    return Patient(site.provider(tmp_path / "power.json"))


class TestPowerProvider(ProviderContract):
    """The contract of all providers, but for reboots."""

    def test_a_reboot_keeps_the_instance(self, provider: ProviderPort) -> None:
        """A powered-down node loses its drain: it is replaced instead, which the refusal makes the head do."""
        made = provider.launch(SLOT, "t1")
        with pytest.raises(Permanent, match="replace it"):
            provider.reboot(made.id, "r1")


@BOTH
def test_a_node_comes_up_and_is_running_then_goes_down_and_is_gone(site: Site, tmp_path: Path) -> None:
    provider = site.provider(tmp_path / "power.json")
    (site.folder / "slow").touch()
    made = provider.launch(SLOT, "t1")
    assert provider.instances()[made.id].state is InstanceState.PENDING
    (site.folder / "slow").unlink()
    site.wait_power(Power.ON)
    assert provider.instances()[made.id].state is InstanceState.RUNNING
    provider.terminate(made.id)
    assert provider.instances()[made.id].state is InstanceState.GONE
    with pytest.raises(Retryable, match=r"^not yet: .* is still powering down"):
        provider.launch(SLOT, "t2")
    site.wait_power(Power.OFF)
    assert Patient(provider).launch(SLOT, "t2").id != made.id


def test_a_head_that_was_restarted_finds_its_instances(site: Site, tmp_path: Path) -> None:
    made = site.provider(tmp_path / "power.json").launch(SLOT, "t1")
    again = site.provider(tmp_path / "power.json")
    assert again.launch(SLOT, "t1").id == made.id
    assert again.instances()[made.id].token == "t1"


@pytest.mark.parametrize("up", ["shown"], indirect=True)
def test_a_node_that_was_told_twice_to_come_up_is_running_and_can_be_ended(site: Site, tmp_path: Path) -> None:
    """Slurm leaves POWER_UP on it for good, where the node registers before Slurm has looked at the second order."""
    provider = site.provider(tmp_path / "power.json")
    (site.folder / "slow").touch()
    made = provider.launch(SLOT, "t1")
    site.wait_power(Power.COMING)
    site.cluster.run("scontrol", "update", "nodename=n1", "state=power_up")
    (site.folder / "slow").unlink()
    site.wait_power(Power.ON)
    assert provider.instances()[made.id].state is InstanceState.RUNNING
    assert site.slurm.nodes()[NODES[0]].is_schedulable
    provider.terminate(made.id)
    site.cluster.wait("it is gone", lambda: not _is_up(provider, site), FACT_S)


def _is_up(provider: PowerProvider, site: Site) -> bool:
    provider.instances()  # what comes up though it was ended is ended again
    return site.power(NODES[0]) is not Power.OFF


@BOTH
def test_a_resume_program_that_fails_is_a_failed_launch_and_the_next_one_works(site: Site, tmp_path: Path) -> None:
    provider = site.provider(tmp_path / "power.json")
    (site.folder / "fail").touch()
    made = provider.launch(SLOT, "t1")
    site.cluster.wait("it has failed", lambda: provider.instances()[made.id].state is InstanceState.GONE, FACT_S)
    assert "ResumeTimeout" in provider.instances()[made.id].interrupted
    site.all_off()  # Slurm's suspend program for the one that failed would kill the next one's slurmd
    Patient(provider).launch(SLOT, "t2")
    site.wait_power(Power.ON)


def test_a_node_that_slurm_powered_up_by_itself_is_somebodys_and_is_not_launched_over(
    site: Site, tmp_path: Path
) -> None:
    provider = site.provider(tmp_path / "power.json")
    site.cluster.run("scontrol", "update", "nodename=n2", "state=power_up")
    site.wait_power(Power.ON, NODES[1])
    assert [(each.id, each.token) for each in provider.instances().values()] == [("power-n2", "")]
    with pytest.raises(Retryable, match="power-n2 still has this name"):
        provider.launch(OTHER, "t1")
    provider.terminate(InstanceId("power-n2"))
    site.wait_power(Power.OFF, NODES[1])


def test_a_node_that_comes_up_again_by_itself_is_not_the_instance_it_was(site: Site, tmp_path: Path) -> None:
    provider = site.provider(tmp_path / "power.json", settle_s=1.0)
    made = provider.launch(SLOT, "t1")
    site.wait_power(Power.ON)
    site.cluster.run("scontrol", "update", "nodename=n1", "state=power_down_force")
    site.wait_power(Power.OFF)
    assert provider.instances()[made.id].state is InstanceState.GONE
    site.cluster.run("scontrol", "update", "nodename=n1", "state=power_up")
    site.wait_power(Power.ON)
    listed = provider.instances()
    assert {id: each.state for id, each in listed.items()} == {
        made.id: InstanceState.GONE,
        "power-n1": InstanceState.RUNNING,
    }


def test_a_node_of_nobody_is_not_powered(site: Site, tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="is not one of its nodes"):
        site.provider(tmp_path / "power.json").launch(Slot(node=NodeName("head"), group="main"), "t1")
