"""What is done to the cluster, and what is measured. Each returns seconds, and leaves its job to the next reset."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from steward_bed.faults import FaultKind
from tests.bench.way import Way, way_of
from tests.e2e.story import Story, task_script

_BACK_S = 60.0
_PLAIN_BACK_S = 1200.0
_RUN_S = 10.0
"""So long a job runs before its node is hurt, as jobs do, and so long nothing asked Slurm for a pass over its queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`goal_s` None: it is there to compare with."""

    name: str
    goal_s: float | None
    measure: Callable[[Story], "Measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    seconds: float
    way: Way = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hurt:
    """The job, and the node of it that is hurt: not its batch host."""

    job: int
    node: str


def marked_to_tasks(story: Story) -> Measured:
    """A living node is marked DOWN: from then to the last task on the others and the spare.

    Drained first, as Steward does it: else slurmd brings it back at once.
    """
    hurt = running_step(story)
    story.bed.run(["scontrol", "update", f"nodename={hurt.node}", "state=drain", "reason=bench"])
    hurt_at = time.time()
    story.bed.run(["scontrol", "update", f"nodename={hurt.node}", "state=down", "reason=bench"])
    return measured(story, hurt, hurt_at, tasks_of_attempt(story, 2))


def killed_to_tasks(story: Story) -> Measured:
    """A node dies, a spare is in the allocation: from its death to the last task of the next attempt."""
    hurt = running_step(story)
    hurt_at = story.hurt(FaultKind.KILL_NODE, hurt.node)
    return measured(story, hurt, hurt_at, tasks_of_attempt(story, 2))


def killed_to_batch(story: Story) -> Measured:
    """A node dies, the spare is idle outside: from its death to the job's script."""
    hurt = running_batch(story, "--auto-resume=1")
    time.sleep(_RUN_S)
    hurt_at = story.hurt(FaultKind.KILL_NODE, hurt.node)
    return measured(story, hurt, hurt_at, script_again(story, _BACK_S))


def frozen_to_marked(story: Story) -> Measured:
    """Every process of a node stands still: from then to our mark."""
    hurt = running_step(story)
    hurt_at = story.hurt(FaultKind.FREEZE_NODE, hurt.node)
    return measured(story, hurt, hurt_at, time_of(story, "marked", hurt.node, hurt_at))


def measured(story: Story, hurt: Hurt, hurt_at: float, until: float) -> Measured:
    way = way_of(story.bed.logs(), node=hurt.node, job=hurt.job, fault=hurt_at, tasks=until)
    return Measured(seconds=until - hurt_at, way=way)


def plain_requeue(story: Story) -> float:
    """Slurm alone, its defaults: from the death of a node to the job's script.

    Without a step: here the dead node's connections are reset, which no power cut does, and `srun` would fail the job
    before Slurm knows of the node.
    """
    hurt = running_batch(story, "--requeue", "sleep 3600")
    hurt_at = story.hurt(FaultKind.KILL_NODE, hurt.node)
    return script_again(story, _PLAIN_BACK_S) - hurt_at


SCENARIOS = (
    Scenario(name="mark to tasks, spare inside", goal_s=0.15, measure=marked_to_tasks),
    Scenario(name="kill to tasks, spare inside", goal_s=0.25, measure=killed_to_tasks),
    Scenario(name="kill to batch, spare outside", goal_s=1.2, measure=killed_to_batch),
    Scenario(name="freeze to mark", goal_s=1.5, measure=frozen_to_marked),
)


def running_step(story: Story) -> Hurt:
    """Four tasks on four of five nodes."""
    script = story.script("train.sh", f"srun -N4 -n4 bash {task_script(story)}\n")
    job = story.submit(script, "--auto-resume=1", "-N5", "--no-kill", "--ntasks-per-node=1", "--gres=gpu:8")
    story.wait("four tasks run", lambda: len(starts(story, 1)) == 4)
    host = story.job(job).batch_host
    return Hurt(job=job, node=next(node for node, _ in starts(story, 1) if node != host))


def running_batch(story: Story, option: str, work: str = "srun sleep 3600") -> Hurt:
    """A job on four nodes that writes when its script starts."""
    script = story.script("train.sh", f"{note(story)}{work}\n")
    job = story.submit(script, option, "-N4", "--ntasks-per-node=1", "--gres=gpu:8")
    story.wait("the script runs", lambda: scripts(story, 0))
    return Hurt(job=job, node=other_node(story, job))


def note(story: Story) -> str:
    """Line of a script: it writes that it starts."""
    return f'echo "restart=${{SLURM_RESTART_COUNT:-0}} $(date +%s.%N)" >>{story.dir}/scripts\n'


def other_node(story: Story, job: int) -> str:
    """A node of the job that is not its batch host."""
    host = story.job(job).batch_host
    names = story.bed.run(["scontrol", "show", "hostnames", story.job(job).fields["NodeList"]]).text.split()
    return next(node for node in names if node != host)


def starts(story: Story, attempt: int) -> list[tuple[str, float]]:
    """(node, when) of each task of the attempt."""
    words = [line.split() for line in story.lines("started") if f"attempt={attempt} " in line]
    return [(line[0].split(":")[1], float(line[-1])) for line in words]


def tasks_of_attempt(story: Story, attempt: int, deadline_s: float = _BACK_S) -> float:
    story.wait("all tasks run again", lambda: len(starts(story, attempt)) == 4, deadline_s)
    return max(at for _, at in starts(story, attempt))


def scripts(story: Story, restart: int) -> list[float]:
    return [float(line.split()[1]) for line in story.lines("scripts") if line.startswith(f"restart={restart} ")]


def script_again(story: Story, deadline_s: float) -> float:
    story.wait("the script runs again", lambda: scripts(story, 1), deadline_s)
    return scripts(story, 1)[0]


def time_of(story: Story, word: str, node: str, since: float) -> float:
    """When the node's case was `detected` or `marked`."""

    def times() -> list[float]:
        return [float(case[word]) for case in story.cases(node, since=since) if case[word]]

    story.wait(f"{node} is {word}", times, _BACK_S)
    return times()[0]
