"""What a takeover costs with two heads: `python -m tests.bench.takeover [--runs N] [--idle-s S] [--json FILE]`.

A real cluster with two heads on one MariaDB, with the lease's own times. In the moment in which a node reports a fault,
the leader is killed (kill -9) or stands still (SIGSTOP); it is killed together with a node under a job; it hands the
lead over. Prints, for each, how long it took until the other head led, until its first act, until a question that
was asked in that moment had its answer (a page, by both addresses; an order, which is done once), and until the job's
tasks ran again. Goals (95th percentile): first act 5 s, handover 0.5 s, the job runs again 8 s.

And what a head costs that follows: goals 1 % of a core, 110 MiB, 0.2 calls a second to slurmctld. With 10,000 agents:
`tests.bench.reconnect --takeover`.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from steward_bed import beds
from steward_bed.bed import Bed, BedSpec, Overrides
from steward_bed.beds import reset, stoppable, take_down
from steward_bed.faults import FaultKind
from steward_bed.wait import NotInTime, wait_until
from tests.bench.recovery import new_dir
from tests.bench.scale_bed import watch_quiet
from tests.bench.scenarios import running_step, tasks_of_attempt
from tests.bench.summary import Sample, as_json, as_table, summarize
from tests.contract.mariadb import missing
from tests.e2e.pair import Pair, a_pair
from tests.e2e.story import Story

NODES = 6
_FAULT = "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: be00000000800400"
_NO_LIMITS: Overrides = {"repair": {"node_repairs": 100, "replacements_per_hour": 10000, "breaker_min": 100}}
_LONG_S = 60.0
_SETTLE_S = 5.0
"""After this time agents hold the connection that they have."""
FOLLOWER_GOALS = {"percent": 1.0, "rss_mib": 110.0, "calls_per_s": 0.2}

say = Console(stderr=True).print


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`goal_s` None: it is there to compare with. `seconds` None: it did not come in time."""

    name: str
    goal_s: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """What the head costs that follows; `calls_per_s` are those to slurmctld with it less those without it."""

    percent: float
    rss_mib: float
    calls_per_s: float

    def missed(self) -> list[str]:
        """Return a line for each goal that is not met."""
        found = asdict(self)
        return [
            f"{name} is {found[name]:g}, the goal is {goal:g}"
            for name, goal in FOLLOWER_GOALS.items()
            if found[name] > goal
        ]


Scenario = Callable[[Pair, Story], list[Figure]]


def killed(pair: Pair, story: Story) -> list[Figure]:
    """A node reports a fault in the moment in which the leader dies; a page and an order are asked for then."""
    return _finds(pair, story, "kill -9", FaultKind.KILL_HEAD, {"page": ["status"], "order": ["resume-actions"]})


def frozen(pair: Pair, story: Story) -> list[Figure]:
    """The same with a leader that stands still: an order that it may have taken is not given to another head."""
    return _finds(pair, story, "frozen", FaultKind.STOP_HEAD, {"page": ["status"]})


def killed_with_a_node(pair: Pair, story: Story) -> list[Figure]:
    """The leader and a node under a job die at once; the job's shim asks while no head leads."""
    pair.let_first_lead()
    time.sleep(_SETTLE_S)
    hurt = running_step(story)
    story.hurt(FaultKind.KILL_HEAD)
    began = story.hurt(FaultKind.KILL_NODE, hurt.node)
    back = tasks_of_attempt(story, 2) - began
    return [Figure(name="kill -9 with a node: its job's tasks run again", goal_s=8.0, seconds=back)]


def handed_over(pair: Pair, story: Story) -> list[Figure]:
    """From the end of the one's lead to the beginning of the other's."""
    began = time.time()
    story.bed.run(["steward", "--url", ",".join(pair.urls), "head", "handover"])
    leads = _since(pair, "head.leads", began)
    gap = leads - _since(pair, "head.handed_over", began)
    return [Figure(name="handover: the other head leads", goal_s=0.5, seconds=gap)]


SCENARIOS: Sequence[Scenario] = (killed, frozen, killed_with_a_node, handed_over)


def _finds(pair: Pair, story: Story, name: str, kind: FaultKind, questions: dict[str, list[str]]) -> list[Figure]:
    pair.let_first_lead()
    time.sleep(_SETTLE_S)
    with ThreadPoolExecutor(len(questions)) as askers:
        began = story.hurt(kind)
        story.hurt(FaultKind.KERNEL_LOG, "n1", _FAULT)
        asked = {what: askers.submit(_answered_s, pair, argv) for what, argv in questions.items()}
        leads = _since(pair, "head.leads", began) - began
        act = _marked(pair, "n1", began) - began
        answered = {what: each.result() for what, each in asked.items()}
    return [
        Figure(name=f"{name}: the other head leads", goal_s=None, seconds=leads),
        Figure(name=f"{name}: its first act", goal_s=5.0, seconds=act),
        *(
            Figure(name=f"{name}: {what} that was asked then", goal_s=None, seconds=took)
            for what, took in answered.items()
        ),
    ]


def _answered_s(pair: Pair, argv: Sequence[str]) -> float | None:
    """How long the command takes, as its user waits for it; None if it fails."""
    began = time.monotonic()
    done = pair.bed.run(["steward", "--url", ",".join(pair.urls), *argv], check=False, timeout_s=_LONG_S)
    if done.returncode:
        say(f"steward {' '.join(argv)}: {done.stderr.decode()}")
        return None
    return time.monotonic() - began


def _since(pair: Pair, kind: str, began: float) -> float:
    """When the first event of this kind happened after that."""

    def found() -> list[float]:
        return [float(event["at"]) for event in pair.events(kind, began)]

    wait_until(f"{kind} happened", found, _LONG_S, every_s=0.1)
    return found()[0]


def _marked(pair: Pair, node: str, began: float) -> float:
    """When the node was taken out."""

    def found() -> list[float]:
        return [float(case["marked"]) for case in pair.cases(node, began) if case["marked"]]

    wait_until(f"{node} is taken out", found, _LONG_S, every_s=0.1)
    return found()[0]


def runs_of(pair: Pair, runs: int) -> list[Sample]:
    found = []
    for scenario in SCENARIOS:
        for run in range(1, runs + 1):
            for figure in _one_run(pair, scenario):
                took = "missed" if figure.seconds is None else f"{figure.seconds:.2f} s"
                say(f"{figure.name} {run}: {took}")
                found.append(Sample(scenario=figure.name, goal_s=figure.goal_s, seconds=figure.seconds))
    return found


def _one_run(pair: Pair, scenario: Scenario) -> list[Figure]:
    pair.start_both()
    reset(pair.bed)
    pair.start_both()
    story = Story(pair.bed, Path(tempfile.mkdtemp(prefix="run-", dir=pair.bed.shared)))
    story.dir.chmod(0o1777)
    try:
        return scenario(pair, story)
    except NotInTime as error:
        say(str(error))
        return [Figure(name=f"{scenario.__name__}: all of it", goal_s=_LONG_S, seconds=None)]


def follower_cost(pair: Pair, seconds: float) -> Follower:
    """While nothing happens: with the follower, and without it."""
    pair.let_first_lead()
    reset(pair.bed)
    time.sleep(min(seconds, 3 * _SETTLE_S))
    process = pair.second.process
    assert process is not None, "the second head has ended"
    both = watch_quiet(pair.bed, seconds, settle_s=0.0, of=process.pid)
    pair.second.kill()
    alone = watch_quiet(pair.bed, seconds, settle_s=1.0)
    calls = max(0.0, both.rpcs_per_s - alone.rpcs_per_s)
    return Follower(percent=round(both.idle_percent, 2), rss_mib=round(both.rss_mib, 1), calls_per_s=round(calls, 3))


@contextmanager
def _up(settings: Overrides) -> Iterator[Bed]:
    bed = beds.make(BedSpec(dir=new_dir(), nodes=NODES, settings=settings))
    with stoppable():
        try:
            bed.up(say)
            yield bed
        finally:
            take_down(bed, say)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="of each kind")
    parser.add_argument("--idle-s", type=float, default=120.0, help="how long the idle follower is watched")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    if absent := missing():
        print(f"no MariaDB: {', '.join(absent)} not installed (mariadb-server-core)")
        return 1
    with a_pair(_up, _NO_LIMITS) as pair:
        follower = follower_cost(pair, asked.idle_s)
        samples = runs_of(pair, asked.runs)
    summaries = summarize(samples, [])
    Console(width=120).print(as_table(summaries))
    calls = f"{follower.calls_per_s:g} calls to slurmctld a second"
    print(f"a follower: {follower.percent:g} % of a core, {follower.rss_mib:g} MiB, {calls}")
    for line in (failed := follower.missed()):
        print(f"missed: {line}")
    if asked.json:
        figures = {**as_json(samples, [], summaries), "follower": asdict(follower)}
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if not failed and all(each.is_good for each in summaries) else 1


if __name__ == "__main__":
    sys.exit(main())
