"""What a resumed job is given: its sound nodes while the lost one is replaced, a hot spare."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from steward_bed.bed import Bed
from steward_bed.beds import reset
from steward_bed.faults import FaultKind
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import Story, task_script

REPAIR_S = 60.0
HOT = "steward-hot-main"


@pytest.fixture(scope="module")
def keep_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """Nodes n1..n3, of which a job takes all."""
    yield from brought_up(request, nodes=3, steward=True)


@pytest.fixture
def site(keep_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    reset(keep_bed)
    with own_place(keep_bed, request) as place:
        yield Story(keep_bed, place)


def ran_on(site: Story, restart: int) -> set[str]:
    return {line.split()[0].split(":")[1] for line in site.lines("started") if f"restart={restart} " in line}


def reservations(site: Story) -> str:
    return site.bed.run(["scontrol", "--oneliner", "show", "reservations"]).text


def lose_n2(site: Story) -> tuple[int, int]:
    """A job on all nodes loses one, which nobody replaces yet, while another waits for any node: their ids."""
    job = site.submit(site.script("train.sh", f"srun bash {task_script(site)}\n"), "--auto-resume=1", "-N3", "-n3")
    site.wait("three tasks run", lambda: len(ran_on(site, 0)) == 3)
    other = site.submit(site.script("other.sh", "sleep 300\n"), "-N1", "--exclusive", "--nice=-50")
    site.hurt(FaultKind.REFUSE_LAUNCH)
    site.hurt(FaultKind.KILL_NODE, "n2")
    site.wait("its sound nodes are kept", lambda: f"steward-keep-{job}" in reservations(site))
    return job, other


def test_the_other_nodes_wait_for_the_replacement_and_the_job_goes_first(site: Story) -> None:
    job, other = lose_n2(site)
    site.wait("the job is back in the queue", lambda: site.job(job).state == "PENDING")
    assert "kept for it" in site.explain(f"{job}")
    assert site.job(other).state == "PENDING"

    site.hurt(FaultKind.ALLOW_LAUNCH)
    site.wait("three tasks run again", lambda: len(ran_on(site, 1)) == 3, REPAIR_S)

    assert site.job(other).state == "PENDING"
    site.wait("nothing is kept", lambda: "steward-keep" not in reservations(site))
    site.wait("its nice value is its own again", lambda: site.job(job).fields["Nice"] == "0")


def test_idle_nodes_that_cannot_serve_the_job_do_not_end_what_is_kept_for_it(site: Story) -> None:
    with nodes_with_feature(site, "big", ("n1", "n2")):
        job = site.submit(
            site.script("train.sh", f"srun bash {task_script(site)}\n"), "--auto-resume=1", "-N2", "-Cbig"
        )
        site.wait("two tasks run", lambda: len(ran_on(site, 0)) == 2)
        other = site.submit(site.script("other.sh", "sleep 300\n"), "-N1", "--exclusive", "-Cbig", "--nice=-50")
        site.hurt(FaultKind.REFUSE_LAUNCH)
        site.hurt(FaultKind.KILL_NODE, "n2")
        site.wait("Slurm's own test says why", lambda: "too few nodes with its features" in site.explain(f"{job}"))
        assert f"steward-keep-{job}" in reservations(site)  # though n3 is idle
        assert site.job(other).state == "PENDING"

        site.hurt(FaultKind.ALLOW_LAUNCH)
        site.wait("two tasks run again", lambda: len(ran_on(site, 1)) == 2, REPAIR_S)
        assert site.job(other).state == "PENDING"
        for each in (job, other):
            site.bed.run(["scancel", f"{each}"])


def test_a_job_that_takes_any_number_of_nodes_runs_again_on_those_that_are_left(site: Story) -> None:
    job = site.submit(site.script("train.sh", f"srun bash {task_script(site)}\n"), "--auto-resume=1", "-N1-3")
    site.wait("three tasks run", lambda: len(ran_on(site, 0)) == 3)
    site.hurt(FaultKind.REFUSE_LAUNCH)
    site.hurt(FaultKind.KILL_NODE, "n3")

    site.wait("two tasks run", lambda: ran_on(site, 1) == {"n1", "n2"}, REPAIR_S)
    site.wait("nothing is kept", lambda: "steward-keep" not in reservations(site))
    site.bed.run(["scancel", f"{job}"])
    site.hurt(FaultKind.ALLOW_LAUNCH)


@contextmanager
def nodes_with_feature(site: Story, feature: str, nodes: Sequence[str]) -> Iterator[None]:
    def give(add: str) -> None:
        for node in nodes:
            shown = site.bed.run(["scontrol", "--oneliner", "show", "node", node]).text
            had = shown.partition("AvailableFeatures=")[2].split()[0].removeprefix("(null)").split(",")
            words = ",".join([*filter(None, [add]), *(word for word in had if word not in ("", feature))])
            lists = (f"availablefeatures={words}", f"activefeatures={words}")
            site.bed.run(["scontrol", "update", f"nodename={node}", *lists])

    give(feature)
    try:
        yield
    finally:
        give("")


@pytest.fixture
def hot_site(request: pytest.FixtureRequest) -> Iterator[Story]:
    """Nodes n1..n3, one of them kept for resumed jobs."""
    for bed in brought_up(request, nodes=3, steward=True, settings={"resume": {"hot_spares": 1}}):
        with own_place(bed, request) as place:
            yield Story(bed, place)


def test_a_job_that_lacks_a_node_gets_the_hot_spare_and_another_job_does_not(hot_site: Story) -> None:
    site = hot_site
    site.wait("a hot spare is kept", lambda: HOT in reservations(site), 15)
    job = site.submit(site.script("train.sh", f"srun bash {task_script(site)}\n"), "--auto-resume=1", "-N2", "-n2")
    site.wait("two tasks run", lambda: len(ran_on(site, 0)) == 2)
    other = site.submit(site.script("other.sh", "sleep 300\n"), "-N1", "--exclusive", "--nice=-50")
    site.wait("it is known that this one waits, too", lambda: site.explain(f"{other}"), REPAIR_S)
    (spare,) = {"n1", "n2", "n3"} - ran_on(site, 0)
    victim = max(ran_on(site, 0))
    site.hurt(FaultKind.REFUSE_LAUNCH)

    site.hurt(FaultKind.KILL_NODE, victim)

    site.wait("two tasks run again", lambda: len(ran_on(site, 1)) == 2, REPAIR_S)
    assert spare in ran_on(site, 1)
    assert site.job(other).state == "PENDING"
    assert any(event["job"] == job for event in site.events("job.hot_spare"))
    site.hurt(FaultKind.ALLOW_LAUNCH)
