"""Many nodes lost at once, each with a job: `python -m tests.bench.lost_many [--lost N] [--sound N] [--json FILE]`.

A real slurmctld, a real slurmd behind each node; their agents are simulated, as in `reconnect.py`. Each of the nodes
that are lost runs a batch job of its own that is resumed; as many others and more are idle. Then the power of all of
them is cut in one moment. Counted from the first ruling that a node is gone: when the first job runs again, and when
all are back in the queue or run. Goal: 2 s and 10 s.
"""

import argparse
import json
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from steward.adapters import proc
from steward.model.ids import NodeName
from steward_bed.bed import Bed, BedSpec
from steward_bed.layout import Layout
from steward_bed.local_setup import find_program, load, slurm_env
from steward_bed.providers.local_machine import Machine, Program, own_environment, power_on
from steward_bed.wait import ask_head, wait_until, wait_until_empty
from tests.bench.reconnect import crowd
from tests.bench.recovery import new_dir, with_bed

GOAL_FIRST_S, GOAL_QUEUED_S = 2.0, 10.0
_LOOPBACK = "127.0.0.1"
_UP_S = 300.0
_WATCH_S = 180.0
_LOOK_S = 0.2
_IN_A_RACK = 50
_PORTS = 61_000
"""The first of the slurmds' ports: above those that test beds and Linux choose from."""
_SETTINGS = {"resume": {"default": [{"partition": "many", "mode": "1"}]}}
_SUBMIT = "for i in $(seq {count}); do sbatch --parsable -N1 -pmany -o /dev/null -D /tmp --wrap 'sleep 3600'; done"

say = Console(stderr=True).print


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Seconds; `ruled_s` counts from the power cut, the others from the first ruling."""

    lost: int
    ruled_s: float
    first_s: float | None
    queued_s: float | None
    running_s: float | None

    @property
    def is_good(self) -> bool:
        if self.first_s is None or self.queued_s is None:
            return False
        return self.first_s <= GOAL_FIRST_S and self.queued_s <= GOAL_QUEUED_S


def names(kind: str, count: int) -> list[NodeName]:
    return [NodeName(f"{kind}{number}") for number in range(1, count + 1)]


def spec_of(lost: Sequence[NodeName], sound: Sequence[NodeName]) -> BedSpec:
    """Nodes with ports of their own, in a partition of their own; two lines for all, as a site writes them: each
    command of Slurm reads slurm.conf."""
    host, first = socket.gethostname(), _PORTS
    lines = []
    for nodes in (lost, sound):
        names, ports = f"{nodes[0][:-1]}[1-{len(nodes)}]", f"[{first}-{first + len(nodes) - 1}]"
        lines.append(f"NodeName={names} NodeHostname={host} NodeAddr={_LOOPBACK} Port={ports} CPUs=1 State=UNKNOWN")
        first += len(nodes)
    many = f"lost[1-{len(lost)}],sound[1-{len(sound)}]"
    lines.append(f"PartitionName=many Nodes={many} Default=NO MaxTime=INFINITE State=UP")
    # One node that is silent, so that the bed does not wait for ours, which begin later.
    return BedSpec(dir=new_dir(), nodes=3, silent=1, slurm_conf="\n".join(lines), settings=_SETTINGS)


def racks(bed: Bed, nodes: Sequence[NodeName]) -> list[Machine]:
    """A slurmd for each of the nodes, in racks of some."""
    return [_rack(bed, nodes[first : first + _IN_A_RACK]) for first in range(0, len(nodes), _IN_A_RACK)]


def _rack(bed: Bed, nodes: Sequence[NodeName]) -> Machine:
    layout = Layout(root=bed.spec.dir)
    for node in nodes:
        (layout.node(node) / "spool").mkdir(parents=True)
    slurmd, env = find_program("slurmd"), own_environment(slurm_env(layout))
    programs = tuple(
        Program(
            name=node,
            argv=(slurmd, "-D", "-N", node, "-f", str(layout.slurm_conf)),
            env=env,
            log=layout.output(f"slurmd-{node}"),
        )
        for node in nodes
    )
    return power_on(nodes[0], programs, cwd=layout.root, state=layout.root / f"rack-{nodes[0]}.json")


def cut(racks: Sequence[Machine]) -> None:
    """All their processes end in one moment."""
    children: dict[int, list[proc.Seen]] = {}
    for seen in proc.all_processes():
        children.setdefault(seen.parent, []).append(seen)
    doomed = [rack.init for rack in racks]
    parents = [init.pid for init in doomed]
    while below := [seen for pid in parents for seen in children.get(pid, [])]:
        doomed += [seen.process for seen in below]
        parents = [seen.process.pid for seen in below]
    for process in doomed:
        proc.send(process, signal.SIGKILL)


def states(bed: Bed) -> Counter[str]:
    told = bed.run(["squeue", "--noheader", "--partition=many", "--format=%T"], timeout_s=60).text
    return Counter(told.split())


def restarted(bed: Bed) -> int:
    """How many jobs run again."""
    told = bed.run(["squeue", "--noheader", "--partition=many", "--states=R", "-O", "RestartCnt"], timeout_s=60).text
    return sum(word != "0" for word in told.split())


def bring_up(
    bed: Bed, stack: ExitStack, lost: list[NodeName], sound: list[NodeName], settle_s: float
) -> tuple[list[Machine], ExitStack]:
    """Slurmds, agents, and a job on each node that is to be lost; what ends the agents of these."""
    layout = Layout(root=bed.spec.dir)
    listen = load(layout).listen
    doomed_racks = racks(bed, lost)
    stack.callback(cut, doomed_racks)
    stack.callback(cut, racks(bed, sound))
    idle = ["sinfo", "--noheader", "--partition=many", "--states=idle", "--format=%D"]

    def are_up() -> bool:
        return sum(map(int, bed.run(idle, timeout_s=60).text.split())) == len(lost) + len(sound)

    wait_until("every slurmd is up", are_up, _UP_S, every_s=2.0)
    say("slurmds are up")
    doomed = stack.enter_context(ExitStack())
    for nodes, holder in ((lost, doomed), (sound, stack)):
        holder.enter_context(crowd([(node, _LOOPBACK) for node in nodes], listen, munged=str(layout.munge_socket)))
    many = {*lost, *sound}

    def unconnected() -> list[str]:
        told = ask_head(bed, "/v1/nodes")
        return [one["name"] for one in told if one["name"] in many and not (one["agent"] or {}).get("connected")][:5]

    wait_until_empty("every agent is connected", unconnected, _UP_S, every_s=2.0)
    say("agents are connected")
    bed.run(["scontrol", "update", f"nodename=sound[1-{len(sound)}]", "state=drain", "reason=wait"], timeout_s=60)
    bed.run(["sh", "-c", _SUBMIT.format(count=len(lost))], timeout_s=_UP_S)
    wait_until("every job runs", lambda: states(bed)["RUNNING"] == len(lost), _UP_S, every_s=2.0)
    say("jobs run")
    wait_until("Steward knows every job", lambda: len(ask_head(bed, "/v1/jobs")) == len(lost), _UP_S, every_s=2.0)
    bed.run(["scontrol", "update", f"nodename=sound[1-{len(sound)}]", "state=resume"], timeout_s=60)
    time.sleep(settle_s)
    return doomed_racks, doomed


def measure(bed: Bed, asked: argparse.Namespace) -> Found:
    lost, sound = names("lost", asked.lost), names("sound", asked.sound)
    with ExitStack() as stack:
        doomed, agents = bring_up(bed, stack, lost, sound, asked.settle_s)
        began = time.time()
        cut(doomed)
        agents.close()
        say(f"power is cut, {time.time() - began:.2f} s")
        return watch(bed, began, asked.lost)


def watch(bed: Bed, began: float, lost: int) -> Found:
    """Until all jobs run again, or too long."""
    queued_at = first_at = running_at = None
    shown = ""
    while time.time() < began + _WATCH_S and running_at is None:
        now, seen, back = time.time(), states(bed), restarted(bed)
        waiting = seen["PENDING"] + back
        if back and first_at is None:
            first_at = now
        if waiting >= lost and queued_at is None:
            queued_at = now
        if back >= lost:
            running_at = now
        if (line := f"{dict(seen)}, {back} run again") != shown:
            say(f"{now - began:6.1f} s: {line}")
            shown = line
        time.sleep(_LOOK_S)
    marked = [case["marked"] for case in ask_head(bed, "/v1/cases") if case["opened"] >= began and case["marked"]]
    told = Counter(event["kind"] for event in ask_head(bed, "/v1/events?limit=5000") if event["at"] >= began)
    say(f"{len(marked)} nodes taken out within {max(marked, default=began) - began:.1f} s; events: {dict(told)}")
    ruled = min(marked, default=began)
    return Found(
        lost=lost,
        ruled_s=round(ruled - began, 2),
        first_s=None if first_at is None else round(first_at - ruled, 2),
        queued_s=None if queued_at is None else round(queued_at - ruled, 2),
        running_s=None if running_at is None else round(running_at - ruled, 2),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lost", type=int, default=1000)
    parser.add_argument("--sound", type=int, default=1100)
    parser.add_argument("--settle-s", type=float, default=10.0, help="how long nothing happens before the power is cut")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    spec = spec_of(names("lost", asked.lost), names("sound", asked.sound))
    found = with_bed(spec, lambda bed: measure(bed, asked))
    print(json.dumps(asdict(found), indent=2))
    if asked.json:
        asked.json.write_text(json.dumps(asdict(found)))
    return 0 if found.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
