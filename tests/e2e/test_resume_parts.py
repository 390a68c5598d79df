"""A heterogeneous job on real Slurm: a fault under one part brings the whole job back."""

from collections.abc import Iterator

import pytest

from steward_bed.bed import Bed
from steward_bed.faults import FaultKind
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import XID_79, Story

SLURM = "SchedulerParameters=bf_interval=1\n"
"""Only the backfill scheduler starts heterogeneous jobs, every 30 s by itself."""
REPAIR_S = 60.0


@pytest.fixture(scope="module")
def parts_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    yield from brought_up(request, nodes=3, steward=True, slurm_conf=SLURM)


@pytest.fixture
def site(parts_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    with own_place(parts_bed, request) as place:
        yield Story(parts_bed, place)


def ran_on(site: Story, restart: int) -> set[str]:
    return {line.split()[0] for line in site.lines("started") if line.endswith(f" {restart}")}


def test_a_gpu_that_fell_off_the_bus_under_another_part_brings_the_whole_job_back(site: Story) -> None:
    task = site.script(
        "task.sh",
        f"""restart=${{SLURM_RESTART_COUNT:-0}}
echo "$SLURMD_NODENAME $restart" >>{site.dir}/started
while [ $restart = 0 ] && [ ! -e {site.dir}/die ]; do sleep 0.05; done
[ $restart != 0 ]
""",
    )
    script = site.script("parts.sh", f"srun --het-group=0,1 bash {task}\n")
    job = site.submit(script, "--auto-resume=1", "-N1", "-wn1", ":", "-N1", "-wn2")
    site.wait("both parts run", lambda: ran_on(site, 0) == {"n1", "n2"}, 30.0)

    site.hurt(FaultKind.KERNEL_LOG, "n2", XID_79)
    (site.dir / "die").touch()

    site.wait("both parts run again", lambda: ran_on(site, 1) == {"n1", "n2"}, REPAIR_S)
    site.wait_state(job, "COMPLETED")
    (decided,) = [e["text"] for e in site.events("job.decided") if e["job"] == job]
    assert "n2" in decided


def test_a_batch_host_that_dies_brings_the_other_part_back_with_it(site: Story) -> None:
    """Slurm requeues the part that lost its node and leaves the other one where it is."""
    task = site.script(
        "task.sh",
        f"""echo "$SLURMD_NODENAME ${{SLURM_RESTART_COUNT:-0}}" >>{site.dir}/started
[ ${{SLURM_RESTART_COUNT:-0}} != 0 ] || sleep 600
""",
    )
    script = site.script("parts.sh", f"srun --het-group=0,1 bash {task}\n")
    job = site.submit(script, "--auto-resume=1", "-N1", ":", "-N1")
    site.wait("both parts run", lambda: len(ran_on(site, 0)) == 2, 30.0)

    first = site.bed.run(["squeue", "--noheader", f"--jobs={job}", "--format=%i %B"]).text.splitlines()
    site.hurt(FaultKind.KILL_NODE, next(line.split()[1] for line in first if line.startswith(f"{job}+0 ")))

    site.wait("both parts run again", lambda: len(ran_on(site, 1)) == 2, REPAIR_S)
    site.wait_state(job, "COMPLETED")
    assert len(site.events("job.parts")) == 1
