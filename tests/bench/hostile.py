"""Hostile users beside many faults: `python -m tests.bench.hostile [--users 2] [--minutes N] [--faults N]`.

A few nodes are killed in quiet, then as many as asked for while an ordinary user, or two beside each other, do all of
`hostile_acts.py`. Told: how long a job's tasks take to run again, quiet and beside them; the jobs of another ordinary
user that were lost and the nodes that were taken out without a fault, of which there must be none; and what the head,
its store and the agents hold, which must stay within what docs/security.md says.

On a test bed the head, all nodes and the hostile user share one machine's processors. Beside each fault a step of plain
Slurm is timed, too, in a job without Steward on the node whose slurmd the user attacks: for comparison, no excuse.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from steward_bed.bed import Bed, BedSpec
from steward_bed.faults import FaultKind
from steward_bed.layout import Layout
from steward_bed.local_setup import free_ports, load
from steward_bed.wait import NotInTime
from tests.bench import hostile_acts, scale_bed
from tests.bench.recovery import new_dir, with_bed
from tests.bench.soak import rows
from tests.bench.summary import percentile
from tests.e2e.on_node import agent_of
from tests.e2e.story import Story, task_script

USERS = ("nobody", "man")
"""The hostile ones ..."""
OTHER = "games"
"""... and whose jobs nothing may happen to."""
NODES = 7
_CALM = f"n{NODES}"
"""The node of the jobs that nothing may happen to; the user's worst is meant for it."""
_PORTS = range(20_000, 32_000)
"""Where the agent looks for a port of a coordinator ..."""
_TAKEN = 2000
"""... and how many of these the user takes: more would leave other test beds on this machine without ports."""
_BACK_S, _CLOSED_S = 120.0, 240.0
MOST_HEAD_MIB, MOST_AGENT_MIB, MOST_STORE_MIB = 256.0, 64.0, 128.0
"""What docs/security.md promises of the head's memory, of an agent's, and of the store beside one hostile user."""
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)
_REPAIR = {"node_repairs": 100, "node_repairs_window_h": 0.1, "replacements_per_hour": 10_000, "breaker_min": 10_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What is held at one moment, in MiB: the head's memory, that of the largest agent, the store with its log of
    writes, and the text logs of Steward; and the rows of the store."""

    head_mib: float
    agent_mib: float
    store_mib: float
    logs_mib: float
    rows: dict[str, int]

    @property
    def is_within(self) -> bool:
        return self.head_mib <= MOST_HEAD_MIB and self.agent_mib <= MOST_AGENT_MIB and self.store_mib <= MOST_STORE_MIB


@dataclass(kw_only=True)
class Found:
    """Seconds from kill to tasks; jobs and nodes that suffered without a fault; what is held at the end."""

    quiet_s: list[float] = field(default_factory=list)
    beside_s: list[float] = field(default_factory=list)
    quiet_step_s: list[float] = field(default_factory=list)
    """What a step of plain Slurm took beside each fault (s)."""
    beside_step_s: list[float] = field(default_factory=list)
    missed: int = 0
    killed: list[str] = field(default_factory=list)
    taken_out: list[str] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)
    suspected: dict[str, int] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    """After each fault, and at the end."""
    kinds: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    """What went wrong in the bench itself: each costs its own figure, and the run is not called unharmed."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--quiet-faults", type=int, default=3)
    parser.add_argument("--users", type=int, default=1, choices=range(1, len(USERS) + 1), help="hostile at once")
    parser.add_argument("--settle-s", type=float, default=60.0, help="how long nothing happens at the end")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    spec = BedSpec(dir=new_dir(), nodes=NODES, settings={"repair": _REPAIR})
    found = Found()
    try:
        with_bed(spec, lambda bed: soak(bed, found, asked))
    finally:  # whatever ends it, what was found is told
        text = json.dumps(asdict(found), indent=2)
        print(f"{text}\n{summary(found)}")
        if asked.json:
            asked.json.write_text(f"{text}\n")
    return 0 if is_unharmed(found) else 1


def is_unharmed(found: Found) -> bool:
    harmed = (
        found.taken_out or found.missed or found.silent or found.errors or set(found.jobs.values()) != {"RUNNING 0"}
    )
    is_measured = bool(found.quiet_s and found.beside_s and found.held)
    return is_measured and not harmed and all(one.is_within for one in found.held) and _slower(found) <= 2.0


def _slower(found: Found) -> float:
    return percentile(found.beside_s, 50) / percentile(found.quiet_s, 50)


def _steps_slower(found: Found) -> float:
    """How many times longer a step of plain Slurm took beside the users; 1 if it was not measured."""
    if not found.quiet_step_s or not found.beside_step_s:
        return 1.0
    return percentile(found.beside_step_s, 50) / percentile(found.quiet_step_s, 50)


def summary(found: Found) -> str:
    if not found.quiet_s or not found.beside_s:
        return "no figures"
    quiet, beside = ((percentile(took, 50), max(took)) for took in (found.quiet_s, found.beside_s))
    text = f"kill to tasks: quiet {quiet[0]:.2f} s median, {quiet[1]:.2f} s longest of {len(found.quiet_s)}; beside the"
    text += f" users {beside[0]:.2f} s, {beside[1]:.2f} s of {len(found.beside_s)}: {_slower(found):.2f} times; "
    text += f"a step of plain Slurm: {_steps_slower(found):.2f} times; "
    for what, most in (("head_mib", MOST_HEAD_MIB), ("agent_mib", MOST_AGENT_MIB), ("store_mib", MOST_STORE_MIB)):
        text += f"{what} {max((getattr(one, what) for one in found.held), default=0.0):.0f} of {most:.0f}; "
    return text + ("unharmed" if is_unharmed(found) else "NOT unharmed")


def soak(bed: Bed, found: Found, asked: argparse.Namespace) -> None:
    began, seconds = time.time(), asked.minutes * 60.0
    calm = Story(bed, Path(tempfile.mkdtemp(prefix="calm-", dir=bed.shared)))
    calm.dir.chmod(0o755)
    wait, quietly = calm.script("wait.sh", "srun sleep 36000\n"), (f"-w{_CALM}", "-n1", "-o/dev/null")
    jobs = [calm.submit(wait, *options, *quietly, user=OTHER) for options in ((), ("--auto-resume=1",))]
    for job in jobs:
        calm.wait_state(job, "RUNNING")
    for _ in range(asked.quiet_faults):
        one_fault(bed, found, found.quiet_s)
        looked(found, "a plain step", lambda: found.quiet_step_s.append(plain_step_s(bed, jobs[0])))
    users = USERS[: asked.users]
    with ThreadPoolExecutor(len(users)) as beside:
        argv = ["nice", "-n", "10", *program(bed, calm, seconds, jobs[1])]
        evil = [beside.submit(bed.run, argv, user=user, timeout_s=seconds + 300.0) for user in users]
        started = time.time()
        for number in range(asked.faults):
            time.sleep(max(0.0, started + number * seconds / asked.faults + 5.0 - time.time()))
            one_fault(bed, found, found.beside_s)
            looked(found, "a plain step", lambda: found.beside_step_s.append(plain_step_s(bed, jobs[0])))
            looked(found, "what the head holds", lambda: note(bed, found))
            say(f"{number + 1}: {found.beside_s[-1:]} {found.held[-1:]}")
        for one in evil:
            looked(found, "a user's program", lambda one=one: said_done(one.result().text))  # type: ignore[misc]
    time.sleep(asked.settle_s)
    looked(found, "what the head holds", lambda: note(bed, found))
    for job in jobs:
        looked(found, f"job {job}", partial(how_it_is, calm, job, found))
    looked(found, "silent agents", lambda: found.silent.extend(calm.silent_agents()))
    looked(found, "cases", lambda: found.taken_out.extend(without_a_fault(calm, found, began)))
    looked(found, "suspected", lambda: found.suspected.update(suspected(calm, found, began)))
    looked(found, "events", lambda: found.kinds.update(Counter(event["kind"] for event in calm.events(since=began))))


def looked(found: Found, what: str, look: Callable[[], object]) -> None:
    """A look that fails costs its own figure, and no other."""
    try:
        look()
    except Exception as error:
        found.errors.append(f"{what}: {type(error).__name__}: {error}"[:400])
        say(found.errors[-1])


def said_done(text: str) -> None:
    assert "done" in text, text[-400:]


def how_it_is(calm: Story, job: int, found: Found) -> None:
    seen = calm.job(job)
    found.jobs[str(job)] = f"{seen.state} {seen.restarts}"


def without_a_fault(calm: Story, found: Found, began: float) -> list[str]:
    return sorted({case["node"] for case in calm.cases(since=began) if case["marked"]} - set(found.killed))


def suspected(calm: Story, found: Found, began: float) -> Counter[str]:
    events = calm.events("node.suspect", since=began)
    return Counter(event["node"] for event in events if event["node"] not in found.killed)


def one_fault(bed: Bed, found: Found, took: list[float]) -> None:
    """A node of an opted-in job dies that is not its batch host; there is a spare in the allocation."""
    story = Story(bed, Path(tempfile.mkdtemp(prefix="run-", dir=bed.shared)))
    story.dir.chmod(0o1777)
    script = story.script("train.sh", f"srun -N2 -n2 bash {task_script(story)}\n")
    options = ("--auto-resume=1", "-N3", "--no-kill", "--ntasks-per-node=1", "--gres=gpu:1", f"-x{_CALM}")
    job = story.submit(script, *options)
    try:
        story.wait("two tasks run", lambda: len(started(story, 1)) == 2, _CLOSED_S)
        time.sleep(3.0)
        host = story.job(job).batch_host
        node = next(node for node in started(story, 1) if node != host)
        found.killed.append(node)
        story.hurt(FaultKind.KILL_NODE, node)
        fault = time.time()
        story.wait("two tasks run again", lambda: len(started(story, 2)) == 2, _BACK_S)
        took.append(max(started(story, 2).values()) - fault)
        story.wait("the repair is over", lambda: not open_cases(story, node), _CLOSED_S)
    except NotInTime as error:
        say(f"missed: {error}")
        found.missed += 1
    except Exception as error:  # the bench's own: the next fault may be measured all the same
        found.errors.append(f"a fault: {type(error).__name__}: {error}"[:400])
        say(found.errors[-1])
    finally:
        bed.run(["scancel", str(job)], check=False)


def plain_step_s(bed: Bed, job: int) -> float:
    """What a step that does nothing takes in a job that did not opt in: Slurm's own part, without us."""
    began = time.monotonic()
    bed.run(["srun", f"--jobid={job}", "--overlap", "-n1", "true"], user=OTHER)
    return time.monotonic() - began


def started(story: Story, attempt: int) -> dict[str, float]:
    words = [line.split() for line in story.lines("started") if f"attempt={attempt} " in line]
    return {line[0].split(":")[1]: float(line[-1]) for line in words}


def open_cases(story: Story, node: str) -> list[str]:
    return [case["step"] for case in story.cases(node) if case["step"] != "closed"]


def program(bed: Bed, story: Story, seconds: float, other: int) -> list[str]:
    """A copy that the user can read."""
    path, layout = story.dir / "hostile_acts.py", Layout(root=bed.spec.dir)
    shutil.copy(Path(hostile_acts.__file__), path)
    path.chmod(0o755)
    ports = load(layout)
    run = bed.spec.dir / "run"
    sockets = [str(run / f"agent-n{number}.sock") for number in range(1, NODES + 1)]
    folders = str(bed.spec.dir / "nodes" / _CALM / "jobs")
    free = story.dir / "ports"
    free.write_text("\n".join(map(str, free_ports(_TAKEN, _PORTS))))
    theirs = (ports.listen, ports.http, other, folders, run / "munge.sock", free)
    words = (seconds, story.node_field(_CALM, "Port"), *theirs)
    return ["/usr/bin/python3", str(path), *map(str, words), *sockets]


def note(bed: Bed, found: Found) -> None:
    store = Layout(root=bed.spec.dir).controller / "stewardd" / "steward.db"
    files = [path for end in ("", "-wal") if (path := store.with_name(f"{store.name}{end}")).exists()]
    logs = [path for name, path in bed.logs().items() if name.startswith("steward") and path.exists()]
    held = Held(
        head_mib=scale_bed.memory_mib(bed),
        agent_mib=max(_resident_mib(agent_of(bed, f"n{number}").pid) for number in range(1, NODES + 1)),
        store_mib=_mib(files),
        logs_mib=_mib(logs),
        rows=rows(store),
    )
    found.held.append(held)


def _resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_MIB


def _mib(files: list[Path]) -> float:
    return sum(path.stat().st_size for path in files) / (1 << 20)


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
