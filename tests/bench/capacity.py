"""What a big cluster costs the head: `python -m tests.bench.capacity [--first N] [--most N] [--last N] [--json FILE]`.

A cluster of 1,000 nodes is created through the real API, scaled to 2,000 and down to 100, while two clients read it
all the time. The head is the real one, with its store on disk; Slurm, provider, machines and agents are simulated, each
Slurm command and each call of the provider takes its time (`--command-ms`, `--call-ms`).
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console

from steward.head.serve import suit_many_nodes
from steward.model.slot import SlotStep
from steward.policy.plan import plan
from tests.bench.api_load import CLUSTER, Read, reading
from tests.bench.bench_head import BenchHead, a_bench_head
from tests.bench.capacity_summary import Phase, Quiet, as_json, as_table, misses

_LIMIT_S = 600.0
_QUIET_S = 5.0
_QUIET_PLANS = 30

say = Console(stderr=True).print


def main() -> int:
    asked = arguments()
    suit_many_nodes()
    with tempfile.TemporaryDirectory(prefix="steward-bench-") as directory:
        phases, quiet = measure(asked, Path(directory))
    Console(width=150).print(as_table(phases, quiet))
    if asked.json:
        asked.json.write_text(json.dumps(as_json(phases, quiet), indent=2) + "\n")
    missed = misses(phases, quiet)
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1000, help="workers that the cluster is created with")
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("--last", type=int, default=100)
    parser.add_argument("--command-ms", type=float, default=10.0, help="what a Slurm command takes")
    parser.add_argument("--call-ms", type=float, default=100.0, help="what a call of the provider takes")
    parser.add_argument("--boot-s", type=float, default=3.0)
    parser.add_argument("--every-ms", type=float, default=100.0, help="a client's rest between two reads")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    return parser.parse_args()


def measure(asked: argparse.Namespace, directory: Path) -> tuple[list[Phase], Quiet]:
    times = {"command_s": asked.command_ms / 1e3, "call_s": asked.call_ms / 1e3, "boot_s": asked.boot_s}
    with a_bench_head(directory / "steward.db", **times) as head:
        client = head.aws.boto()
        settled(head, lambda: head.cycle.latest is not None, "the first look")
        phases = [phase(head, f"create {asked.first}", asked.first, 0, lambda: create(client, asked.first))]
        with reading(head.url, directory / "reads.json", asked.every_ms / 1e3) as end:
            time.sleep(2.0)
            grow = [asked.first + (asked.most - asked.first) * step // 10 for step in range(1, 11)]
            phases.append(
                phase(
                    head, f"grow to {asked.most}", asked.most, asked.first, *updates(client, list(dict.fromkeys(grow)))
                )
            )
            quiet, still = rest(head, asked.most)
            phases.append(still)
            phases.append(
                phase(head, f"shrink to {asked.last}", asked.last, asked.most, *updates(client, [asked.last]))
            )
            reads = end()
    return [replace(one, reads=within(reads, one)) for one in phases], quiet


def create(client: Any, many: int) -> None:
    controller = worker(1) | {"InstanceGroupName": "controller", "SlurmConfig": {"NodeType": "Controller"}}
    client.create_cluster(
        ClusterName=CLUSTER,
        InstanceGroups=[controller, worker(many)],
        Orchestrator={"Slurm": {}},
        NodeProvisioningMode="Continuous",
    )


def updates(client: Any, counts: list[int]) -> list[Callable[[], object]]:
    """One call after the other, as several people scale at once."""
    return [partial(client.update_cluster, ClusterName=CLUSTER, InstanceGroups=[worker(many)]) for many in counts]


def worker(many: int) -> dict[str, Any]:
    return {
        "InstanceGroupName": "workers",
        "InstanceCount": many,
        "InstanceType": "ml.g5.xlarge",
        "ExecutionRole": "arn:aws:iam::000000000000:role/any",
        "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-none/", "OnCreate": "none.sh"},
        "SlurmConfig": {"NodeType": "Compute", "PartitionNames": ["dev"]},
    }


def phase(head: BenchHead, name: str, workers: int, before: int, *calls: Callable[[], object]) -> Phase:
    """Give the orders, wait until exactly this many serve and all others are gone."""
    head.turns.clear()
    commands, made = head.slurm.commands.copy(), head.provider.calls.copy()
    began, orders = time.time(), []
    for call in calls:
        given = time.monotonic()
        call()
        orders.append(time.monotonic() - given)
    settled(head, lambda: is_there(head, workers), name)
    ended = time.time()
    return Phase(
        name=name,
        began=began,
        ended=ended,
        turns=tuple(turn.phases for turn in head.turns),
        orders=tuple(orders),
        commands=head.slurm.commands - commands,
        launches=head.provider.calls["launch"] - made["launch"],
        ends=head.provider.calls["end"] - made["end"],
        end_calls=head.provider.calls["terminate"] - made["terminate"],
        needed=workers - before,
    )


def is_there(head: BenchHead, workers: int) -> bool:
    latest = head.cycle.latest
    slots = latest.memory.slots.values() if latest else ()
    return len(slots) == workers + 1 and all(slot.step is SlotStep.SERVING for slot in slots)


def settled(head: BenchHead, true: Callable[[], bool], what: str) -> None:
    end, told = time.monotonic() + _LIMIT_S, time.monotonic()
    while not true():
        if time.monotonic() > end:
            raise SystemExit(f"not within {_LIMIT_S:.0f} s: {what}: {told_steps(head)}")
        if time.monotonic() > told + 10:
            told = time.monotonic()
            say(f"{what}: {told_steps(head)}")
        time.sleep(0.02)


def told_steps(head: BenchHead) -> str:
    latest = head.cycle.latest
    steps: dict[str, int] = {}
    for slot in latest.memory.slots.values() if latest else ():
        steps[slot.step.value] = steps.get(slot.step.value, 0) + 1
    return ", ".join(f"{many} {step}" for step, many in sorted(steps.items()))


def rest(head: BenchHead, workers: int) -> tuple[Quiet, Phase]:
    """A while in which nothing is to be done, and what a plan of it costs by itself."""
    time.sleep(_QUIET_S / 2)
    still = phase(head, "quiet", workers, workers, lambda: time.sleep(_QUIET_S))
    latest = head.cycle.latest
    assert latest is not None
    took: list[float] = []
    for _ in range(_QUIET_PLANS):
        began = time.thread_time()
        made = plan(latest.seen, head.want, latest.memory, latest.seen.at)
        took.append(time.thread_time() - began)
        if made.actions:
            raise SystemExit(f"not quiet: {made.actions[:3]}")
    return Quiet(slots=len(latest.memory.slots), plans=tuple(took)), replace(still, orders=())


def within(reads: list[Read], one: Phase) -> MappingProxyType[str, tuple[float, ...]]:
    names = sorted({read.operation for read in reads})
    return MappingProxyType(
        {
            name: tuple(r.seconds for r in reads if r.operation == name and one.began <= r.at < one.ended)
            for name in names
        }
    )


if __name__ == "__main__":
    sys.exit(main())
