"""A site with fixed hardware: a spare serves for a lost node until that is back and passes its checks; reboot by
command."""

from collections.abc import Iterator

import pytest

from steward_bed.bed import Bed
from steward_bed.faults import FaultKind
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import Story, task_script

HOLD = "steward:spare:hold:pool"


@pytest.fixture(scope="module")
def site_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """Nodes n1..n3 and the spare s1, all in one partition."""
    yield from brought_up(request, nodes=3, steward=True, fixed_with_spares=1)


@pytest.fixture
def site(site_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    with own_place(site_bed, request) as place:
        yield Story(site_bed, place)


def is_waiting(site: Story) -> bool:
    return site.node_field("s1", "Reason").startswith(HOLD) and "DRAIN" in site.node_state("s1")


def ran_on(site: Story, restart: int) -> set[str]:
    return {line.split()[0].split(":")[1] for line in site.lines("started") if f"restart={restart} " in line}


def boot_id(site: Story, node: str) -> str:
    shown = {each["name"]: each["agent"] for each in site.get("/v1/nodes")}
    return str(shown[node]["boot"])


def test_a_job_resumes_on_the_spare_which_goes_back_when_the_node_is_mended(site: Story) -> None:
    assert is_waiting(site)
    job = site.submit(site.script("train.sh", f"srun bash {task_script(site)}\n"), "--auto-resume=1", "-N3", "-n3")
    site.wait("three tasks run", lambda: ran_on(site, 0) == {"n1", "n2", "n3"})

    hurt_at = site.hurt(FaultKind.KILL_NODE, "n2")

    site.wait("the tasks run again, one of them on the spare", lambda: ran_on(site, 1) == {"n1", "n3", "s1"}, 40)
    case = site.wait_case("n2", "held", since=hurt_at)
    assert case["stand_in"] == "s1"
    assert "scontrol update nodename=n2 state=resume" in site.explain("n2")
    assert "serves for n2" in site.explain("s1")
    assert "DOWN" in site.node_state("n2")

    site.hurt(FaultKind.START_NODE, "n2")

    site.wait_case("n2", "closed", since=hurt_at)  # its checks passed: nobody has to give it back
    site.wait("the spare takes no more jobs", lambda: is_waiting(site))
    assert site.job(job).state == "RUNNING"
    (site.dir / "go").touch()
    assert site.wait_end(job).state == "COMPLETED"
    site.wait("the spare is idle and held", lambda: site.node_state("s1") == "IDLE+DRAIN")
    assert [site.node_state(node) for node in ("n1", "n2", "n3")] == ["IDLE"] * 3


def test_an_admins_reboot_runs_the_sites_command_and_the_node_returns(site: Story) -> None:
    before, asked_at = boot_id(site, "n3"), site.events()[-1]["at"]

    site.bed.run(["scontrol", "update", "nodename=n3", "state=fail", "reason=Action:Reboot"])

    site.wait_case("n3", "closed", since=asked_at)
    site.wait("n3 takes jobs again", lambda: site.node_state("n3") == "IDLE")
    assert boot_id(site, "n3") != before
    assert is_waiting(site)
