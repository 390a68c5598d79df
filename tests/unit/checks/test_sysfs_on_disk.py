"""The same trees as files: what the probes name is what the judges need, and a restart of the agent forgets nothing."""

import asyncio
from pathlib import Path

import pytest

from steward.adapters.node.probe import LocalProbes
from steward.agent.track import CheckMemory, Track
from steward.checks import ACCELERATORS
from steward.checks.check import Check, Facts
from steward.checks.fabric import FABRIC, ib_ports, net
from steward.checks.known import limits_of
from steward.model.agent_tables import HealthPolicy
from steward.model.health import Incarnation, Outcome
from steward.model.ids import BootId, InstanceId, NodeName
from tests.builders.looks import Looks
from tests.builders.sysfs import amd_gpu, efa, ethernet, infiniband, kfd_cpu, neuron_device, write
from tests.fakes.clock import FakeClock

CHECKS = tuple(check for check in (*FABRIC, *ACCELERATORS) if check.source == "sysfs")
NODE = (infiniband(), infiniband("mlx5_1"), efa(), ethernet(), kfd_cpu(), amd_gpu(0), amd_gpu(1), neuron_device(0))


@pytest.fixture
def probes(tmp_path: Path) -> LocalProbes:
    return LocalProbes(skew_s=lambda: None, sys=tmp_path)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_every_check_finds_on_disk_what_it_judges(check: Check, probes: LocalProbes, tmp_path: Path) -> None:
    facts = Looks(check).facts
    (probe,) = check.probes(facts)
    assert Looks(check).at(0, probes.look(probe)).outcome is Outcome.SKIPPED
    write(tmp_path, *NODE)
    fresh = LocalProbes(skew_s=lambda: None, sys=tmp_path)
    assert Looks(check).at(0, fresh.look(probe)).outcome is Outcome.PASSED


def test_a_virtual_interface_is_read_only_where_the_site_names_it(probes: LocalProbes, tmp_path: Path) -> None:
    write(tmp_path, ethernet(), ethernet("bond0", has_device=False))

    def seen(*names: str) -> set[str]:
        facts = Facts(node=NodeName("n1"), limits=limits_of({"net.*.interfaces": names}))
        (probe,) = net.OPERSTATE.probes(facts)
        return {path.split("/")[4] for path in probes.look(probe).files}

    assert seen() == {"eth0"}
    assert "bond0" in seen("bond0")


def test_checks_of_one_kind_share_one_look() -> None:
    facts = Looks(CHECKS[0]).facts
    kinds = {(check.probes(facts), check.every_s) for check in CHECKS}
    assert len(kinds) == 5, "links, counters, Ethernet, AMD, Neuron"


def test_a_link_that_bounced_too_often_stays_bad_when_the_agent_is_killed(tmp_path: Path) -> None:
    clock = FakeClock(1000.0)
    limits = limits_of({"ib.flap.downs_per_hour": 1, "ib.flap.trips_per_day": 1})

    def started_agent() -> Track:
        whose = Incarnation(instance=InstanceId("i-1"), boot=BootId("b-1"))
        return Track(
            ib_ports.FLAP,
            facts=Facts(node=NodeName("n1"), limits=limits),
            probes=LocalProbes(skew_s=lambda: None, sys=tmp_path / "sys"),
            clock=clock,
            health=HealthPolicy(),
            interval_s=15.0,
            memory=CheckMemory(tmp_path / "checks-n1.json", incarnation=whose, clock=clock),
        )

    async def look(state: str) -> tuple[Outcome, str]:
        track = started_agent()  # a new one each time: it was killed after its last look
        write(tmp_path / "sys", infiniband(state=state))
        clock.at += 15
        await track.look()
        return track.finding.outcome, track.finding.text

    for state in ("4: ACTIVE", "1: DOWN", "4: ACTIVE"):
        assert asyncio.run(look(state))[0] is Outcome.PASSED
    asyncio.run(look("1: DOWN"))
    clock.at += 8 * 3600
    outcome, text = asyncio.run(look("4: ACTIVE"))
    assert outcome is Outcome.UNKNOWN, "one bad look since the start"
    assert "went down too often, 1 time or more in 24 h" in text
