"""What lending is worth: `python -m tests.bench.quota_day [--seed N] [--json FILE]`.

Eight teams own 16 of 128 GPUs each and are busy at different hours. The same day is replayed twice by the head's own
rulings: with fixed quotas, as static QOS limits are, and with quotas that are lent, borrowed and taken back. Sizes and
durations are those of Alibaba's cluster-trace-gpu-v2023 (openb_pod_list_default.csv: 7,064 tasks with GPUs; a part of a
GPU counts as one), drawn by their quantiles. A job that is evicted loses what it did since its last checkpoint.
"""

import argparse
import json
import random
from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steward.model.ids import JobId
from steward.model.quota import Strategy
from steward.policy.quota.decide import UnitStanding
from steward.policy.quota.requests import Unit
from tests.builders.quota import Site, a_unit, gpu_site

TEAMS = tuple(f"t{i}" for i in range(8))
OWNED = 16
TICK_S = 60.0
DAY_S = 86400.0
CHECKPOINT_S = 600.0
BACKOFF_S = 60.0
PEAK_S = 8 * 3600.0
PEAK, REST = 1.9, 0.3
"""What a team asks for in its busy hours and otherwise, as a part of what it owns."""
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.99)
TRACE: Mapping[int, tuple[float, tuple[float, ...]]] = {
    1: (0.9894, (37, 140, 470, 1700, 6100, 86400)),
    2: (0.0023, (40, 450, 2267, 13054, 27368, 86400)),
    4: (0.0021, (22, 36, 542, 3669, 23925, 44259)),
    8: (0.0062, (117, 255, 553, 17759, 86400, 86400)),
}
"""GPUs -> how many of the tasks ask for so many, and the quantiles of their durations in seconds, a day at most."""


@dataclass(slots=True, kw_only=True)
class Task:
    team: str
    gpus: int
    work_s: float
    submitted: float
    started: float = 0.0
    done_s: float = 0.0
    """What its checkpoints keep."""
    waited_s: float | None = None
    evicted: list[float] = field(default_factory=list)

    @property
    def ends(self) -> float:
        return self.started + self.work_s - self.done_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    rows = [replay(a_day(asked.seed), lends=lends) for lends in (False, True)]
    print(json.dumps(rows, indent=2))
    if asked.json:
        asked.json.write_text(json.dumps(rows))
    return 0 if rows[1]["idle_gpu_hours"] < rows[0]["idle_gpu_hours"] else 1


def a_day(seed: int) -> list[Task]:
    """Oldest first."""
    dice = random.Random(seed)
    sizes, weights = list(TRACE), [share for share, _ in TRACE.values()]
    drawn = [_draw(dice, sizes, weights) for _ in range(20_000)]
    mean = sum(gpus * work for gpus, work in drawn) / len(drawn)
    found = []
    for at, team in enumerate(TEAMS):
        now = 0.0
        while now < DAY_S:
            is_busy = (now - at * DAY_S / len(TEAMS)) % DAY_S < PEAK_S
            now += dice.expovariate(OWNED * (PEAK if is_busy else REST) / mean)
            gpus, work = _draw(dice, sizes, weights)
            found.append(Task(team=team, gpus=gpus, work_s=work, submitted=now))
    return sorted((task for task in found if task.submitted < DAY_S), key=lambda task: task.submitted)


def _draw(dice: random.Random, sizes: list[int], weights: list[float]) -> tuple[int, float]:
    gpus = dice.choices(sizes, weights)[0]
    marks, share = TRACE[gpus][1], dice.random()
    at = min(max(bisect(_SHARES, share), 1), len(_SHARES) - 1)
    low, high = _SHARES[at - 1], _SHARES[at]
    part = min(max((share - low) / (high - low), 0.0), 1.0)
    return gpus, marks[at - 1] * (marks[at] / marks[at - 1]) ** part


@dataclass(slots=True, kw_only=True)
class Day:
    site: Site
    tasks: Mapping[JobId, Task]
    waiting: dict[JobId, Unit] = field(default_factory=dict)
    running: dict[JobId, Unit] = field(default_factory=dict)
    busy_s: float = 0.0
    lost_s: float = 0.0
    evictions: int = 0

    def turn(self, now: float) -> None:
        for id in [id for id in self.running if self.tasks[id].ends <= now]:
            del self.running[id]
        found = self.site.decide(self.running.values(), self.waiting.values(), not_before=self._not_before(now))
        made_room = {each.to.id for each in found.yielding}
        for each in found.yielding:
            self._evict(each.unit.id, now)
        for ruling in found.rulings.values():
            if ruling.may_run:
                end = "g" if ruling.standing is UnitStanding.OWN else "b"
                self._start(ruling.unit.id, end, now + (TICK_S if ruling.unit.id in made_room else 0.0))
        self.busy_s += TICK_S * sum(self.tasks[id].gpus for id in self.running)

    def submit(self, id: JobId) -> None:
        task = self.tasks[id]
        self.waiting[id] = a_unit(id, task.team, task.gpus, since=task.submitted)

    def _start(self, id: JobId, end: str, at: float) -> None:
        task = self.tasks[id]
        task.started = at
        task.waited_s = at - task.submitted if task.waited_s is None else task.waited_s
        del self.waiting[id]
        self.running[id] = a_unit(id, task.team, task.gpus, qos=f"stw-{task.team}-{end}", running=True, since=at)

    def _evict(self, id: JobId, now: float) -> None:
        """Its checkpoint signal comes first; half of the time between two checkpoints is lost all the same."""
        task = self.tasks[id]
        done = max(0.0, now - task.started)
        lost = min(done, CHECKPOINT_S / 2)
        task.done_s += done - lost
        task.evicted.append(now)
        self.lost_s += lost * task.gpus
        self.evictions += 1
        del self.running[id]
        self.submit(id)

    def _not_before(self, now: float) -> dict[JobId, float]:
        """As `quota.backoff_s` has it."""
        often = ((id, self.tasks[id].evicted) for id in self.waiting)
        return {
            id: past[-1] + min(BACKOFF_S * 2.0 ** (len(past) - 2), 3600.0)
            for id, past in often
            if len(past) > 1 and past[-1] + min(BACKOFF_S * 2.0 ** (len(past) - 2), 3600.0) > now
        }


def replay(tasks: list[Task], *, lends: bool) -> dict[str, Any]:
    strategy = Strategy.LEND_AND_BORROW if lends else Strategy.DONT_LEND
    teams = dict.fromkeys(TEAMS, (OWNED, strategy))
    day = Day(site=gpu_site(OWNED * len(TEAMS), **teams), tasks={JobId(i): task for i, task in enumerate(tasks, 1)})
    coming, now = sorted(day.tasks, reverse=True), 0.0
    while now < DAY_S:
        while coming and day.tasks[coming[-1]].submitted <= now:
            day.submit(coming.pop())
        day.turn(now)
        now += TICK_S
    capacity = OWNED * len(TEAMS) * DAY_S
    waits = sorted(DAY_S - task.submitted if task.waited_s is None else task.waited_s for task in tasks)
    return {
        "quotas": "lent, borrowed and taken back" if lends else "fixed",
        "jobs": len(tasks),
        "idle_gpu_hours": round((capacity - day.busy_s) / 3600),
        "of_gpu_hours": round(capacity / 3600),
        "lost_gpu_hours": round(day.lost_s / 3600, 1),
        "evictions": day.evictions,
        "started": sum(task.waited_s is not None for task in tasks),
        "wait_median_s": round(waits[len(waits) // 2]),
        "wait_p95_s": round(waits[int(len(waits) * 0.95)]),
    }


if __name__ == "__main__":
    raise SystemExit(main())
