"""`python -m tests.bench.assess`: how often the truth lies in the 80 % interval, and what a million runs cost to read.

Each of `--years` synthetic years is a site of its own (tests/bench/site_years.py). The goal for the total saving is 75
to 90 % of the years; a year with `--records` runs is read by a process of its own, in 60 s and 500 MiB.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steward.assess.answer import answer
from steward.assess.ask import KeptAnswers
from steward.assess.estimate import ASSUMPTIONS
from steward.assess.look import look
from steward.assess.savings import NODE_HOURS
from tests.bench.site_years import SiteYear, a_year

FEATURES = ("find", "hang", "repair", "lemons", "resume")
GOAL = (0.75, 0.90)
SECONDS, MIB = 60.0, 500.0
# Of the child itself: what its parent had counts in its ru_maxrss, too.
_READ = """
import sys
from steward.assess.__main__ import main
main(["--from", sys.argv[1], "--html", sys.argv[1] + "/page.html"])
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def covered(years: int, nodes: int, jobs: int, first: int) -> dict[str, Any]:
    """In which share of the years the truth lies in the interval, by feature and in all, and the means of both."""
    inside: Counter[str] = Counter()
    sums: dict[str, list[float]] = {name: [0.0, 0.0, 0.0] for name in (*FEATURES, "all")}
    for seed in range(first, first + years):
        for name, truth, interval in compare(a_year(seed, nodes=nodes, jobs=jobs)):
            inside[name] += interval["low"] - 0.05 <= truth <= interval["high"] + 0.05
            for place, value in enumerate((truth, interval["middle"], interval["high"] - interval["low"])):
                sums[name][place] += value / years
    return {
        name: {
            "inside": round(inside[name] / max(1, years), 3),
            **{word: round(value, 1) for word, value in zip(("truth", "middle", "width"), sums[name], strict=True)},
        }
        for name in sums
    }


def compare(year: SiteYear) -> list[tuple[str, float, Mapping[str, float]]]:
    """Name, truth in hours, and interval; the total is that of node-hours."""
    with tempfile.TemporaryDirectory() as folder:
        year.keep(Path(folder))
        past, gaps = look(KeptAnswers(Path(folder)))
    found = answer(past, {one.key: one for one in ASSUMPTIONS}, None, gaps)
    truth = {name: year.truth[name] / 3600 for name in FEATURES}
    each = [(one["feature"], truth[one["feature"]], one) for one in found["savings"] if one["feature"] in truth]
    total = sum(truth[one["feature"]] for one in found["savings"] if one["unit"] == NODE_HOURS)
    return [*each, ("all", total, found["saved"][NODE_HOURS])]


def cost(records: int) -> dict[str, float]:
    """Seconds and MiB of a process that reads a year of so many runs."""
    with tempfile.TemporaryDirectory() as folder:
        year = a_year(1, nodes=max(32, min(1000, records // 500)), jobs=records)
        runs = len(year.jobs)
        year.keep(Path(folder))
        del year
        began = time.monotonic()
        argv = [sys.executable, "-c", _READ, folder]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        seconds, mib = time.monotonic() - began, int(done.stdout.split()[-2]) / 1024
        return {"runs": runs, "seconds": round(seconds, 1), "mib": round(mib, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="the first year's seed")
    parser.add_argument("--nodes", type=int, default=96)
    parser.add_argument("--jobs", type=int, default=6_000)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    figures: dict[str, Any] = {
        "years": asked.years,
        "intervals": covered(asked.years, asked.nodes, asked.jobs, asked.first),
    }
    for name, one in figures["intervals"].items():
        print(
            f"{name:8} truth inside: {one['inside']:6.1%}   "
            f"hours: truth {one['truth']}, middle {one['middle']}, width {one['width']}"
        )
    met = [GOAL[0] <= figures["intervals"]["all"]["inside"] <= GOAL[1]]
    if asked.records:
        figures["cost"] = cost(asked.records)
        print("{runs:,} runs: {seconds} s, {mib} MiB".format(**figures["cost"]))
        met += [figures["cost"]["seconds"] <= SECONDS, figures["cost"]["mib"] <= MIB]
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
