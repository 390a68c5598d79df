"""Programs that users bring to Slurm, whose node dies: what they have built on Slurm still works, with the option on.

They run with this machine's Python packages, which the containers of the docker bed do not have.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.story import Story, task_script

HERE = Path(__file__).parent
REPAIR_S = 60.0


def program(story: Story, name: str, *words: str) -> list[str]:
    """What a program beside this file prints; the cluster's environment is its own."""
    return story.bed.run([sys.executable, str(HERE / name), *words], timeout_s=REPAIR_S).text.split("\n")


def begun(story: Story, *words: str) -> list[list[str]]:
    """Tasks that began and whose line has all these words."""
    lines = [line.split() for line in story.lines("started")]
    return [line for line in lines if set(words) <= set(line)]


def test_submitit_gets_all_results_of_an_array_of_which_a_task_lost_its_node_and_one_was_told_to_save(
    story: Story,
) -> None:
    ids = [word for word in program(story, "submitit_jobs.py", "submit", str(story.dir)) if word]
    assert len(ids) == 3
    story.wait("all three run", lambda: len(begun(story)) == 3, REPAIR_S)
    ((_, victim, *_),) = begun(story, "b")

    story.bed.run(["scancel", "--signal=USR2", ids[0]])
    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)

    story.wait("what was told to save goes on where it was", lambda: begun(story, "a", "1", "True"), REPAIR_S)
    story.wait("what lost its node runs again", lambda: begun(story, "b", "1"), REPAIR_S)
    assert "0 of 5 resumes are used" in story.explain(ids[0])
    assert "1 of 5 resumes are used" in story.explain(ids[1])
    (story.dir / "go").touch()
    for id in ids:
        ended = lambda id=id: id not in story.bed.run(["squeue", "-h", "-r", "-o", "%i"]).text.split()  # noqa: E731
        story.wait(f"{id} ends", ended, REPAIR_S)
    told = program(story, "submitit_jobs.py", "results", str(story.dir), *ids)
    assert [line for line in told if "done" in line] == ["a is done", "b is done", "c is done"]
    assert len(begun(story, "c")) == 1
    story.wait_case(victim, "closed", since=hurt_at)


@pytest.fixture
def reserved(story: Story) -> Iterator[str]:
    """n1..n3 are one team's."""
    words = ["reservationname=team", "nodes=n[1-3]", "starttime=now", "duration=30", "users=root", "flags=ignore_jobs"]
    story.bed.run(["scontrol", "create", "reservation", *words])
    yield "team"
    story.bed.run(["scancel", *map(str, story.jobs)], check=False)
    gone = lambda: story.bed.run(["scontrol", "delete", "reservation=team"], check=False).returncode == 0  # noqa: E731
    story.wait("the reservation is gone", gone, REPAIR_S)


def test_a_job_in_a_reservation_that_saves_and_requeues_itself_as_lightning_does_stays_in_it_also_after_a_fault(
    story: Story, reserved: str
) -> None:
    task = story.script(
        "task.sh",
        f"""cd {story.dir}
echo "$SLURMD_NODENAME restart=${{SLURM_RESTART_COUNT:-0}} from=$(cat saved)" >>started
trap '[ $SLURM_PROCID != 0 ] || {{ echo saved >saved; scontrol requeue $SLURM_JOB_ID; }}' USR1
trap 'exit 143' TERM
while [ ! -e go ]; do sleep 0.05; done
""",
    )
    (story.dir / "saved").write_text("nothing\n")
    script = story.script("train.sh", f"srun bash {task}\n")
    job = story.submit(script, "--auto-resume=1", f"--reservation={reserved}", "-N2", "-n2", "--gres=gpu:8")
    story.wait("it runs", lambda: len(begun(story, "restart=0", "from=nothing")) == 2)

    story.bed.run(["scancel", "--signal=USR1", str(job)])  # as `sbatch --signal=USR1@90` does it before the time limit

    story.wait("it goes on from what it saved", lambda: len(begun(story, "restart=1", "from=saved")) == 2, REPAIR_S)
    assert "0 of 5 resumes are used" in story.explain(f"{job}")
    host = story.job(job).batch_host
    victim = next(node for node, *_ in begun(story, "restart=1") if node != host)

    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)

    story.wait("it runs once more", lambda: len(begun(story, "restart=2", "from=saved")) == 2, REPAIR_S)
    assert {node for node, *_ in begun(story)} <= {"n1", "n2", "n3"}
    assert "1 of 5 resumes are used" in story.explain(f"{job}")
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    story.wait_case(victim, "closed", since=hurt_at)


def in_a_terminal(story: Story, *argv: str) -> "subprocess.Popen[bytes]":
    """A program with a terminal of its own."""
    script = ["script", "--quiet", "--return", "--command", shlex.join(argv), "/dev/null"]
    env = {**os.environ, **story.bed.env}
    return subprocess.Popen(script, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=env)


def test_an_allocation_and_a_terminal_whose_node_died_end_as_slurm_ends_them_and_say_why_nothing_comes_back(
    story: Story,
) -> None:
    task = task_script(story)
    salloc = ["salloc", "--auto-resume=1", "-N2", "-n2", "-w", "n1,n2", "--mem=100M"]
    terminal = ["srun", "--auto-resume=1", "-N1", "-n1", "-w", "n2", "--mem=100M", "--pty"]
    shells = [
        in_a_terminal(story, *salloc, "srun", "bash", str(task)),
        in_a_terminal(story, *terminal, "bash", str(task)),
    ]
    story.wait("all three tasks run", lambda: len(story.lines("started")) == 3)
    shown = story.bed.run(["squeue", "-h", "-o", "%A"]).text.split()

    hurt_at = story.hurt(FaultKind.KILL_NODE, "n2")

    for shell in shells:
        shell.wait(REPAIR_S)
    for job in shown:
        story.wait_state(int(job), "NODE_FAIL")
        why = lambda job=job: "only a batch job can be requeued" in story.explain(job)  # noqa: E731
        story.wait(f"what became of {job} is told", why)
    story.wait_case("n2", "closed", since=hurt_at)


def test_the_ranks_of_a_parallel_program_find_each_other_again_when_their_step_runs_again_in_place(
    story: Story,
) -> None:
    rank = f"{sys.executable} {HERE}/pmi2_rank.py {story.dir}"
    script = story.script("mpi.sh", f"srun --mpi=pmi2 -N2 -n2 {rank}\n")
    job = story.submit(script, "--auto-resume=1", "-N3", "--no-kill", "--gres=gpu:8")
    story.wait("both ranks know the nodes of both", lambda: len(begun(story, "attempt=1")) == 2)
    host = story.job(job).batch_host
    victim = next(node for node in begun(story)[0][-1].split(",") if node != host)

    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)

    story.wait("both do again", lambda: len(begun(story, "attempt=2")) == 2, REPAIR_S)
    assert len({nodes for *_, nodes in begun(story, "attempt=2")}) == 1
    assert victim not in begun(story, "attempt=2")[0][-1].split(",")
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    story.wait_case(victim, "closed", since=hurt_at)


_NEXTFLOW = """#SBATCH -J nf-train_(1)
#SBATCH -o {dir}/.command.log
#SBATCH --no-requeue
#SBATCH --signal B:USR2@30
#SBATCH --auto-resume=1,requeue=1 -N1 -n1
set -e
on_exit() {{ exit_status=${{nxf_main_ret:=$?}}; printf -- $exit_status >{dir}/.exitcode; exit $exit_status; }}
on_term() {{ set +e; kill $pid; }}
trap on_exit EXIT
trap on_term TERM INT USR2
touch {dir}/.command.begin
bash {task} & pid=$!
wait $pid || nxf_main_ret=$?
"""


def test_jobs_as_snakemake_and_nextflow_submit_them_come_back_and_end_well(story: Story) -> None:
    """Their executors submit like this, with the options of docs/resume.md. The engines themselves are not here."""
    task = task_script(story)
    told = ("--job-name=6f2a", f"--output={story.dir}/%j.log", "--export=ALL", "--comment=rule_train")
    wrapped = f"srun -n1 --cpu-bind=q bash {task}"
    snakemake = ("sbatch", "--parsable", *told, "-t60", "-N1", "-n1", "--auto-resume=1", f"--wrap={wrapped}")
    nextflow = ("sbatch", str(story.script(".command.run", _NEXTFLOW.format(dir=story.dir, task=task))))
    jobs = [int(story.bed.run(argv).text.split()[-1]) for argv in (snakemake, nextflow)]
    story.jobs.extend(jobs)
    story.wait("both tasks run", lambda: len(begun(story, "restart=0")) == 2)
    story.wait("requeue is on", lambda: all(story.job(job).fields.get("Requeue") == "1" for job in jobs))
    victims = sorted({str(story.job(job).batch_host) for job in jobs})

    hurt_at = [story.hurt(FaultKind.KILL_NODE, victim) for victim in victims]

    story.wait("both do again", lambda: len(begun(story, "restart=1")) == 2, REPAIR_S)
    shown = story.bed.run(["squeue", "-h", "-o", "%i %t", "--name", "6f2a,nf-train_(1)"]).text.split("\n")
    assert sorted(line.strip() for line in shown if line.strip()) == sorted(f"{job} R" for job in jobs)
    (story.dir / "go").touch()
    assert {story.wait_end(job).state for job in jobs} == {"COMPLETED"}
    assert (story.dir / ".exitcode").read_text() == "0"
    for victim in victims:
        story.wait_case(victim, "closed", since=hurt_at[0])


@pytest.fixture
def pmix() -> None:
    """The library that Slurm's plugin loads, and its binding for the system's Python."""
    has = subprocess.run(["/usr/bin/python3", "-W", "ignore", "-c", "import pmix"], capture_output=True, check=False)
    if has.returncode or not list(Path("/usr/lib").glob("*/pmix2/lib/libpmix.so")):
        pytest.skip("PMIx is not installed: apt-get install libpmix-dev python3-pmix")


@pytest.fixture
def leftovers() -> Iterator[set[int]]:
    """Jobs whose folders a killed slurmstepd left behind: all nodes of the bed have this machine's /tmp."""
    jobs: set[int] = set()
    yield jobs
    for job in jobs:
        for folder in Path("/tmp").glob(f"spmix_appdir_*_{job}.*"):
            shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.usefixtures("pmix")
def test_ranks_that_pmix_launched_run_again_though_a_killed_step_left_its_folder_behind(
    story: Story, leftovers: set[int]
) -> None:
    rank = f"/usr/bin/python3 -W ignore {HERE}/pmix_rank.py {story.dir}"
    script = story.script("mpi.sh", f"srun --mpi=pmix -n2 {rank}\n")
    job = story.submit(script, "--auto-resume=1", "-N1", "-n2")
    leftovers.add(job)
    story.wait("both ranks know the nodes of both", lambda: len(begun(story, "restart=0")) == 2)
    victim = story.job(job).batch_host
    assert victim is not None
    story.hurt(FaultKind.REFUSE_LAUNCH)  # else it may be there again when the job starts

    hurt_at = story.hurt(FaultKind.KILL_NODE, victim)

    story.wait("both do again", lambda: len(begun(story, "restart=1")) == 2, REPAIR_S)
    assert victim not in begun(story, "restart=1")[0][-1].split(",")
    story.hurt(FaultKind.ALLOW_LAUNCH)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"
    story.wait_case(victim, "closed", since=hurt_at)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_five_hundred_short_steps_are_all_run_and_none_is_asked_about(story: Story) -> None:
    one = f"srun -N1 -n1 --exact --mem=10M sh -c 'echo ran >>{story.dir}/ran'"
    script = story.script("many.sh", f"seq 500 | xargs -P8 -I@ {one}\n")
    job = story.submit(script, "--auto-resume=1", "-N2", "-n2", "--gres=gpu:8")
    assert story.wait_end(job, 600.0).exit_code == "0:0"
    assert len(story.lines("ran")) == 500
    assert not [event for event in story.events("job.decided") if event["job"] == job]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_torchrun_meets_on_another_first_node_after_the_first_one_died(story: Story) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.fail("torch is not installed: tools/setup torch")
    worker = story.script(
        "worker.sh",
        f"""first=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1)
exec {sys.executable} -m torch.distributed.run --nnodes 2 --nproc-per-node 1 --local-addr 127.0.0.1 \\
--rdzv-backend c10d --rdzv-id $SLURM_JOB_ID --rdzv-endpoint 127.0.0.1:$((20000 + SLURM_JOB_ID % 10000)) \\
--rdzv-conf is_host=$([ $SLURMD_NODENAME = $first ] && echo 1 || echo 0) {HERE}/torch_worker.py {story.dir}
""",
    )
    script = story.script("train.sh", f"srun bash {worker}\n")
    job = story.submit(script, "--auto-resume=1", "-N2", "-n2", "--gres=gpu:8")
    story.wait("both workers know each other", lambda: len(begun(story, "restart=0", "of=2")) == 2, 90.0)
    first = story.job(job).batch_host
    story.hurt(FaultKind.REFUSE_LAUNCH)  # else it may be there again when the job starts

    hurt_at = story.hurt(FaultKind.KILL_NODE, first)

    story.wait("both do again", lambda: len(begun(story, "restart=1", "of=2")) == 2, 90.0)
    assert first not in {node for node, *_ in begun(story, "restart=1")}
    story.hurt(FaultKind.ALLOW_LAUNCH)
    (story.dir / "go").touch()
    assert story.wait_end(job, REPAIR_S).state == "COMPLETED"
    story.wait_case(first, "closed", since=hurt_at)
