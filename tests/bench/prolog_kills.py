"""Nodes that die in a Prolog: `python -m tests.bench.prolog_kills [--kills N] [--prolog-s S] [--json FILE]`.

On one bed of real Slurm N jobs of one node begin together, each with a Prolog of S seconds. The node of the first is
killed after 1/N of its Prolog, that of the second after 2/N, and so on (20: at each 5 %). Prints how long each job took
until it had nodes again, and which job Slurm or anybody else held meanwhile. Goal: 10 s, none.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from steward_bed.bed import Bed, BedSpec
from steward_bed.faults import FaultKind, fault
from steward_bed.wait import NotInTime, wait_until
from tests.bench.recovery import new_dir, with_bed
from tests.bench.stops import NO_GRES, NO_LIMITS, Watch, at

GOAL_S = 10.0
_SPARE = 4
_BEGIN_S, _BACK_S, _EVERY_S = 120.0, 90.0, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """One job: the part of its Prolog that was over, and how long it had no nodes; None: until the end."""

    part: float
    back_s: float | None = None
    was_held: bool = False
    note: str = ""


def one_kill(watch: Watch, part: float, prolog_s: float) -> Killed:
    argv = ["sbatch", "--parsable", "-N1", "--exclusive", "-o/dev/null", "--auto-resume=1", "--wrap=sleep 600"]
    job = int(watch.bed.run(argv, timeout_s=60).text.split(";")[0])
    wait_until("it has nodes", lambda: watch.word(job, "JobState") == "RUNNING", _BEGIN_S, every_s=_EVERY_S)
    time.sleep(part * prolog_s)
    node, killed = watch.word(job, "NodeList"), time.time()
    watch.bed.inject(fault(FaultKind.KILL_NODE, node))
    held = False

    def is_back() -> bool:
        nonlocal held
        held = held or "held" in watch.word(job, "Reason").lower()
        return watch.restarts(job) == 1 and watch.word(job, "JobState") == "RUNNING"

    try:
        wait_until("it has nodes again", is_back, _BACK_S, every_s=_EVERY_S)
        return Killed(part=part, back_s=time.time() - killed, was_held=held)
    except NotInTime:
        note = f"job {job}: {watch.word(job, 'JobState')} {watch.word(job, 'Reason')}"
        return Killed(part=part, was_held=held, note=note)
    finally:
        watch.bed.run(["scancel", str(job)], check=False, timeout_s=60)


def measure(bed: Bed, kills: int, prolog_s: float) -> list[Killed]:
    prolog = bed.shared / "prolog.sh"
    prolog.write_text(f"#!/bin/sh\nexec sleep {prolog_s:g}\n")
    prolog.chmod(0o755)
    conf = bed.spec.dir / "etc" / "slurm.conf"
    conf.write_text(f"{conf.read_text()}\nProlog={prolog}\nPrologFlags=Alloc\nPrologEpilogTimeout=600\n")
    bed.run(["scontrol", "reconfigure"])
    watch = Watch(bed, look_s=0.2)
    threading.Thread(target=watch.run, daemon=True).start()
    parts = [(number + 1) / (kills + 1) for number in range(kills)]
    with ThreadPoolExecutor(kills) as all_of:
        return [each.result() for each in [all_of.submit(one_kill, watch, part, prolog_s) for part in parts]]


def report(found: Sequence[Killed]) -> dict[str, float]:
    for each in found:
        back = f"back after {each.back_s:.1f} s" if each.back_s is not None else f"not back: {each.note}"
        print(f"{each.part:4.0%} of the Prolog: {back}{', held meanwhile' if each.was_held else ''}")
    took = sorted(each.back_s for each in found if each.back_s is not None)
    lost, held = sum(each.back_s is None for each in found), sum(each.was_held for each in found)
    return {"kills": len(found), "lost": lost, "held": held, "median_s": at(took, 0.5), "most_s": at(took, 1.0)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=19, help="jobs, each hurt later than the one before")
    parser.add_argument("--prolog-s", type=float, default=60.0)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    asked = parser.parse_args()
    settings = {"repair": NO_LIMITS}
    spec = BedSpec(dir=new_dir(), nodes=asked.kills + _SPARE, hardware=NO_GRES, settings=settings)
    found = with_bed(spec, lambda bed: measure(bed, asked.kills, asked.prolog_s))
    figures = report(found)
    print(json.dumps(figures))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
    return 0 if not figures["lost"] and not figures["held"] and figures["most_s"] <= GOAL_S else 1


if __name__ == "__main__":
    sys.exit(main())
