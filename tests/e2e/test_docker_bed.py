"""What only the docker bed can show: a cut cable, real units, jobs in cgroups, a real engine (`--backend docker`)."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steward.adapters.process import run
from steward.model.instance import InstanceState
from steward_bed import beds
from steward_bed.bed import Backend, Bed, BedSpec
from steward_bed.beds import reset
from steward_bed.docker import load_plan, provider_settings
from steward_bed.docker_engine import containers, engine, remove_all
from steward_bed.faults import FaultKind, fault
from steward_bed.layout import DockerLayout
from steward_bed.providers.docker import DockerProvider
from steward_bed.wait import wait_until
from tests.contract.provider import SLOT, ProviderContract
from tests.e2e.conftest import brought_up
from tests.e2e.on_node import on_node
from tests.e2e.story import Story, task_script


@pytest.fixture
def provider(bed: Bed) -> Iterator[DockerProvider]:
    """Machines of the bed's image that belong to no cluster."""
    plan = load_plan(DockerLayout(root=bed.spec.dir))
    cluster = f"{plan.cluster}-contract"
    alone = {"cluster": cluster, "hosts": (), "mounts": (), "environment": ("BED_ROLE=node", "BED_STEWARD=0")}
    yield DockerProvider(provider_settings(plan).model_copy(update=alone))
    with engine() as client:
        remove_all(client, cluster)


@pytest.fixture(scope="module")
def contained_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """A cluster of n1..n3 whose jobs live in cgroups."""
    yield from brought_up(request, nodes=3, steward=True, contain=True)


@pytest.fixture
def new_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """One whose controller started a moment ago."""
    yield from brought_up(request, nodes=1, steward=False)


def test_what_a_node_gets_of_steward_takes_at_most_30_mb(bed: Bed) -> None:
    packages = ("steward-common", "steward-agent", "steward-shim-*")
    told = bed.run(["dpkg-query", "--show", "--showformat=${Installed-Size}\\n", *packages]).text
    sizes_kib = [int(word) for word in told.split()]
    assert len(sizes_kib) == len(packages)
    assert sum(sizes_kib) * 1024 <= 30_000_000


def test_a_controller_that_is_killed_as_soon_as_it_is_there_starts_again(new_bed: Bed) -> None:
    new_bed.inject(fault(FaultKind.KILL_SLURMCTLD))
    new_bed.inject(fault(FaultKind.START_SLURMCTLD))
    reset(new_bed)
    assert new_bed.run(["srun", "-N1", "id", "-un"]).text.strip() == "root"


class TestDockerProvider(ProviderContract):
    """The contract of all providers, on the real engine."""

    def test_a_frozen_machine_can_be_rebooted_and_terminated(self, provider: DockerProvider) -> None:
        made = provider.launch(SLOT, "t1")
        acts: list[Callable[[], None]] = [lambda: provider.reboot(made.id, "r1"), lambda: provider.terminate(made.id)]
        for act in acts:
            with engine() as client:
                client.containers.get(made.id.removeprefix("i-")).pause()
            act()
        assert made.id not in provider.instances()

    def test_the_same_reboot_token_reboots_once(self, provider: DockerProvider) -> None:
        made = provider.launch(SLOT, "t1")
        starts = []
        for token in ("r1", "r1", "r2"):
            provider.reboot(made.id, token)
            with engine() as client:
                starts.append(client.containers.get(made.id.removeprefix("i-")).attrs["State"]["StartedAt"])
        assert starts[0] == starts[1] != starts[2]

    def test_a_killed_machine_is_listed_as_stopped(self, provider: DockerProvider) -> None:
        made = provider.launch(SLOT, "t1")
        with engine() as client:
            client.containers.get(made.id.removeprefix("i-")).kill()
        wait_until("it is off", lambda: provider.instances()[made.id].state is InstanceState.STOPPED, 10)


def test_a_node_whose_network_is_cut_is_replaced_and_its_job_runs_elsewhere(story: Story) -> None:
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    nodes = [line.split()[0].split(":")[1] for line in story.lines("started")]
    victim = next(node for node in nodes if node != story.job(job).batch_host)
    before = story.instance(victim)
    hurt_at = story.hurt(FaultKind.CUT_NODE, victim)
    story.wait("two tasks run again", lambda: len(story.lines("started")) == 4, 60.0)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    story.wait_case(victim, "closed", 60.0, since=hurt_at)
    assert story.instance(victim) != before


def test_the_daemons_are_healthy_units_of_systemd(bed: Bed) -> None:
    words = ["systemctl", "show", "--property=ActiveState,User,Type"]
    head = bed.run([*words, "stewardd"]).text.splitlines()
    assert sorted(head) == ["ActiveState=active", "Type=notify", "User=slurm"]
    agent = on_node(bed, "n1", *words, "steward-agent").splitlines()
    assert sorted(agent) == ["ActiveState=active", "Type=notify", "User="]


def test_systemd_has_no_complaint_about_the_units(bed: Bed) -> None:
    bed.run(["systemd-analyze", "verify", "stewardd.service"])
    on_node(bed, "n1", "systemd-analyze", "verify", "steward-agent.service")


def test_a_rebooted_machine_has_a_new_boot_id_and_the_same_instance(plain_bed: Bed) -> None:
    files = ("cat", "/proc/sys/kernel/random/boot_id", "/etc/steward/instance-id")
    boot, instance = on_node(plain_bed, "n2", *files).split()
    provider = DockerProvider(provider_settings(load_plan(DockerLayout(root=plain_bed.spec.dir))))
    provider.reboot(next(each.id for each in provider.instances().values() if each.node == "n2"), "once")

    def back() -> list[str]:
        """While it boots, one of the files or both may not be there."""
        now = on_node(plain_bed, "n2", *files).split()
        return now if len(now) == 2 and now[0] != boot else []

    assert wait_until("it has another boot id", back, 10)[1] == instance


def test_commands_on_the_host_speak_to_the_bed(bed: Bed) -> None:
    names = run(["sh", "-c", "sinfo --noheader --Node --format=%N"], timeout_s=30, env=bed.env).text.split()
    assert names == ["n1", "n2", "n3", "n4", "n5", "n6"]


def test_with_jobs_in_cgroups_a_job_of_a_dead_node_is_resumed(contained_bed: Bed, tmp_path: Path) -> None:
    place = Path(tempfile.mkdtemp(dir=contained_bed.shared))
    place.chmod(0o1777)
    story = Story(contained_bed, place)
    task = task_script(story)
    script = story.script("train.sh", f"srun sh -c 'cat /proc/self/cgroup > {place}/cgroup'; srun bash {task}\n")
    job = story.submit(script, "--auto-resume=1", "-N2", "-n2", "--gres=gpu:8")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    assert f"/job_{job}/step_0" in (place / "cgroup").read_text()
    victim = next(
        node
        for node in (line.split()[0].split(":")[1] for line in story.lines("started"))
        if node != story.job(job).batch_host
    )
    story.hurt(FaultKind.KILL_NODE, victim)
    story.wait("two tasks run again", lambda: len(story.lines("started")) == 4, 60.0)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"


def test_a_node_that_dies_under_a_step_for_which_no_srun_waits_brings_its_job_back(contained_bed: Bed) -> None:
    """`srun --async` needs a step manager, and that a job has cgroups."""
    if contained_bed.run(["sinfo", "-V"]).text.split()[-1] < "26.05":
        pytest.skip("srun --async is of Slurm 26.05")
    place = Path(tempfile.mkdtemp(dir=contained_bed.shared))
    place.chmod(0o1777)
    story = Story(contained_bed, place)
    text = f"""echo ${{SLURM_RESTART_COUNT:-0}} >>{place}/began
[ -z "$SLURM_RESTART_COUNT" ] || exit 0
other=$(scontrol show hostnames $SLURM_JOB_NODELIST | grep -vx $SLURMD_NODENAME)
srun --async -n1 -w $other sh -c 'echo >{place}/step; exec sleep 600' && echo $other >{place}/other
until [ -e {place}/dead ]; do sleep 0.2; done
exit 7
"""
    job = story.submit(story.script("async.sh", text), "--auto-resume=1", "--stepmgr", "--no-kill", "-N2", "-n2")
    story.wait("the step runs and its srun is over", lambda: (place / "step").exists() and story.lines("other"))
    story.hurt(FaultKind.KILL_NODE, story.lines("other")[0])
    story.wait("the job has lost it", lambda: story.job(job).fields["NumNodes"] == "1", 60.0)
    (place / "dead").touch()
    assert story.wait_end(job, 90.0).state == "COMPLETED"
    assert story.lines("began") == ["0", "1"]


def test_a_bed_that_is_down_left_nothing_behind(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    slurm = request.config.getoption("--slurm")
    spec = BedSpec(dir=tmp_path / "bed", backend=Backend.DOCKER, nodes=1, steward=False, slurm=slurm)
    spec.dir.mkdir()
    bed = beds.make(spec)
    cluster = DockerLayout(root=spec.dir).cluster
    try:
        bed.up(print)
        with engine() as client:
            ids = [str(container.id) for container in containers(client, cluster)]
        assert len(ids) == 2
    finally:
        bed.down()
    with engine() as client:
        assert containers(client, cluster) == []
        assert client.networks.list(names=[cluster]) == []
    assert not spec.dir.exists()
    groups = {name for _, below, _ in os.walk("/sys/fs/cgroup") for name in below}  # of other beds, some may vanish
    assert not groups & set(ids)
    bed.down()
