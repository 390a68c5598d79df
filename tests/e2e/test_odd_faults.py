"""Odd scripts of an ordinary user under other faults than a power cut: each ends as it would without the fault."""

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.changed_conf import changed_conf
from tests.e2e.story import Story

USER = "nobody"
WAIT = "while [ ! -e {dir}/go ]; do sleep 0.2; done; echo done $SLURM_PROCID >>{dir}/{name}-done"

SCRIPTS = {
    "two": ("set -e\nsrun -n1 --exact --mem=10M {task} & srun -n1 --exact --mem=10M {task} & wait\n", ("-n2",), 2),
    "array": ("srun -n1 {task}\n", ("-n1", "--array=0-1%1"), 2),
    "het": ("srun --het-group=0,1 {task}\n", ("-n1", ":", "-n1"), 2),
    "programs": (
        "printf '0 {task}\\n1 {task}\\n' >{dir}/programs\nsrun -n2 --multi-prog {dir}/programs\n",
        ("-n2",),
        2,
    ),
    "exec": ("exec {task}\n", ("-n1",), 1),
    "traps": ("trap 'exit 0' TERM\nsrun -n1 {task} & wait $!\nwait $!\n", ("-n1",), 1),
}
"""Each with its text, its options, and how many tasks end well."""


def submitted(story: Story) -> dict[str, int]:
    """The jobs, all of which run a task on n1."""
    story.dir.chmod(0o777)
    jobs = {}
    for name, (text, options, _) in SCRIPTS.items():
        wait = WAIT.format(dir=story.dir, name=name)
        task = story.script(f"{name}-task.sh", f"echo began >>{story.dir}/{name}-began\n{wait}\n")
        script = story.script(f"{name}.sh", text.format(dir=story.dir, task=task))
        output = ("--output=/dev/null", "--mem=60M", "-N1", "--auto-resume=1")
        parts = " ".join((*output, *options)).split(" : ")
        jobs[name] = story.submit(
            script, *" : ".join([parts[0], *(f"--mem=60M {p}" for p in parts[1:])]).split(), user=USER
        )
    return jobs


def run(story: Story) -> bool:
    began = {name: len(story.lines(f"{name}-began")) for name in SCRIPTS}
    return all(began[name] >= (1 if name == "array" else many) for name, (_, _, many) in SCRIPTS.items())


def go_well(story: Story, jobs: dict[str, int]) -> None:
    (story.dir / "go").touch()
    ended = {name: story.wait_end(job, 240.0) for name, job in jobs.items()}
    told = {name: (seen.state, seen.exit_code) for name, seen in ended.items()}
    assert told == dict.fromkeys(SCRIPTS, ("COMPLETED", "0:0"))
    story.wait("all tasks have ended well", lambda: all(done(story, name) >= SCRIPTS[name][2] for name in SCRIPTS))


def done(story: Story, name: str) -> int:
    """How many tasks of the script ended well, those of an array in all its jobs."""
    return len(story.lines(f"{name}-done"))


@pytest.mark.parametrize("kind", [FaultKind.KILL_AGENT, FaultKind.RESTART_SERVICES])
def test_services_end_under_them_and_no_job_notices(story: Story, kind: FaultKind) -> None:
    jobs = submitted(story)
    story.wait("all run", lambda: run(story), 60.0)
    story.hurt(kind, story.job(jobs["two"]).batch_host)
    go_well(story, jobs)
    assert {name: done(story, name) for name in SCRIPTS} == {name: tasks for name, (_, _, tasks) in SCRIPTS.items()}
    assert [story.job(job).restarts for job in jobs.values()] == [0] * len(jobs)


def test_their_machine_stands_still_and_they_run_on_others(story: Story) -> None:
    jobs = submitted(story)
    story.wait("all run", lambda: run(story), 60.0)
    victim = story.job(jobs["two"]).batch_host
    story.hurt(FaultKind.FREEZE_NODE, victim)
    story.wait("they run again", lambda: story.job(jobs["two"]).restarts == 1, 60.0)
    go_well(story, jobs)


def test_the_prolog_of_their_node_fails_and_they_run_on_others(story: Story) -> None:
    script = story.script("prolog.sh", f'[ "$SLURMD_NODENAME" != n1 ] || [ ! -e {story.dir}/bad ]\n')
    (story.dir / "bad").touch()
    with changed_conf(story.bed, lambda conf: f"{conf}\nProlog={script}\nPrologFlags=Alloc\n"):
        jobs = submitted(story)
        story.wait("all run", lambda: run(story), 90.0)
        (story.dir / "bad").unlink()
        go_well(story, jobs)
