"""Synthetic years of a site with known truth: what sacct and sacctmgr would print, and what Steward would have saved.

Faults hit nodes by chance, and some nodes far more often. Programs save checkpoints or do not, hang, or run longer than
usual. People repair nodes and submit jobs again when they come to it. `steward assess` sees only the text.
"""

import heapq
import random
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from steward.assess.ask import slices
from steward.assess.records import EVENT_FIELDS, JOB_FIELDS

BEGIN = 1_735_689_600
DAY_S, HOUR_S = 86_400, 3_600
SEPARATOR = "\x1f7\x1f"
TIMEOUT_S = 300
STEWARD_NOTICES_S = 12.0
REASONS = {
    "rebooted": ("DOWN", "Node unexpectedly rebooted"),
    "silent": ("DOWN*", "Not responding"),
    "clean_up": ("DRAIN", "Kill task failed"),
}


@dataclass(slots=True, kw_only=True)
class HiddenFault:
    """A fault of a node: it is broken from `at`, Slurm knows from `down`, a person has given it back at `back`."""

    at: float
    down: float
    back: float
    cause: str
    is_curable: bool


@dataclass(slots=True, kw_only=True)
class Program:
    """A user's program, which runs again and again."""

    user: str
    name: str
    nodes: int
    work_s: float
    limit_s: int
    requeues: bool
    saves_every_s: float
    """Infinite if it saves nothing."""
    hangs: float
    fills_its_limit: bool


@dataclass(slots=True, kw_only=True, order=True)
class Submission:
    """A job that waits for nodes. `left_s`: the work that it has still to do."""

    at: float
    job: int
    program: Program = field(compare=False)
    left_s: float = field(compare=False)


@dataclass(kw_only=True)
class SiteYear:
    """The text, and the truth in seconds by feature."""

    begin: int
    end: int
    nodes: int
    jobs: list[tuple[int, str]] = field(default_factory=list)
    """End and line."""
    events: list[str] = field(default_factory=list)
    truth: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    used_s: float = 0.0

    def keep(self, folder: Path) -> None:
        """Write what `steward assess --keep` would have written."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "asked.json").write_text(f'{{"since": {self.begin}, "until": {self.end}}}')
        (folder / "config.txt").write_text(f"ClusterName = synthetic\nSlurmdTimeout = {TIMEOUT_S} sec\n")
        (folder / "nodes.txt").write_text("".join(f"n{place}|64|gpu:8\n" for place in range(self.nodes)))
        (folder / "events.txt").write_text("\n".join([SEPARATOR.join(EVENT_FIELDS), *self.events, ""]))
        self.jobs.sort()
        ends = [end for end, _ in self.jobs]
        for begin, end in slices(self.begin, self.end):
            own = self.jobs[bisect_right(ends, begin - 1) : bisect_right(ends, end - 1)]
            text = "\n".join([SEPARATOR.join(JOB_FIELDS), *(line for _, line in own), ""])
            (folder / f"jobs-{begin}.txt").write_text(text)


def a_year(seed: int, *, nodes: int = 96, jobs: int = 6_000, days: int = 365) -> SiteYear:
    """Return a year of a site that the seed chooses."""
    return _Maker(random.Random(seed), nodes, jobs, days).make()


class _Maker:
    """Runs the jobs of a site, first come, first served."""

    def __init__(self, chance: random.Random, nodes: int, jobs: int, days: int) -> None:
        self.chance, self.jobs = chance, jobs
        self.year = SiteYear(begin=BEGIN, end=BEGIN + days * DAY_S, nodes=nodes)
        self.saves = chance.uniform(0.4, 0.9)
        self.save_every_s = HOUR_S * self.spread(1.3, 2.0)
        self.cured = {
            "rebooted": chance.uniform(0.75, 0.98),
            "silent": chance.uniform(0.3, 0.9),
            "clean_up": chance.uniform(0.6, 0.95),
        }
        self.repair_s = 60 * chance.uniform(5, 40)
        self.hang_found_s = 60 * chance.uniform(6, 60)
        self.wanted = chance.uniform(0.5, 0.95)
        self.heeded = chance.uniform(0.4, 0.9)
        self.person_s = HOUR_S * self.spread(8, 1.8)
        self.longer = chance.uniform(0, 0.006)
        self.lemons = set(chance.sample(range(nodes), k=min(nodes, chance.randrange(4))))
        self.faults = [self.faults_of(node) for node in range(nodes)]
        self.starts = [[fault.at for fault in own] for own in self.faults]
        self.ids = count(1000)
        self.free = [(float(BEGIN), node) for node in range(nodes)]
        self.repairs: list[float] = []

    def spread(self, middle: float, factor: float) -> float:
        """Return a value that lies within this factor of the middle in two of three cases."""
        return float(middle * factor ** self.chance.gauss(0, 1))

    def faults_of(self, node: int) -> list[HiddenFault]:
        """Return the faults of a node: 2 to 8 in 1,000 days, of a lemon thirty times as many."""
        chance, found = self.chance, []
        per_s = 0.004 * (30 if node in self.lemons else 1) / DAY_S
        at = self.year.begin + chance.expovariate(per_s)
        while at < self.year.end:
            cause = chance.choices(tuple(REASONS), weights=(3, 5, 2))[0]
            notices = {"silent": TIMEOUT_S * chance.uniform(1, 4 / 3), "rebooted": chance.uniform(150, 420)}.get(
                cause, 0
            )
            back = at + notices + self.person_s * chance.lognormvariate(0, 1.0)
            is_curable = chance.random() < self.cured[cause]
            found.append(HiddenFault(at=at, down=at + notices, back=back, cause=cause, is_curable=is_curable))
            at = back + chance.expovariate(per_s)
        return found

    def programs(self) -> list[Program]:
        """Return programs of many sizes, such that all their runs keep half of the nodes busy."""
        chance, found = self.chance, []
        for place in range(60):
            work_s = 4 * HOUR_S * chance.lognormvariate(0, 0.9)
            found.append(
                Program(
                    user=f"user{place % 17}",
                    name=f"train-{chr(97 + place % 26)}{chr(97 + place // 26)}",
                    nodes=min(chance.choice((1, 1, 2, 4, 8, 16)), max(1, self.year.nodes // 4)),
                    work_s=work_s,
                    limit_s=0,
                    requeues=chance.random() < 0.5,
                    saves_every_s=self.save_every_s * chance.lognormvariate(0, 0.5)
                    if chance.random() < self.saves
                    else float("inf"),
                    hangs=chance.choice((0, 0, 0, 0.003, 0.008)),
                    fills_its_limit=chance.random() < 0.1,
                )
            )
        asked = sum(one.nodes * one.work_s for one in found) / len(found) * self.jobs
        scale = 0.55 * self.year.nodes * (self.year.end - self.year.begin) / asked
        for one in found:
            one.work_s *= scale
            one.limit_s = max(60, round(one.work_s * chance.uniform(3, 8) / 60) * 60)
        return found

    def make(self) -> SiteYear:
        """Run all jobs, and write down what the accounting and the truth say."""
        programs, year = self.programs(), self.year
        waiting = [
            Submission(
                at=self.chance.uniform(year.begin, year.end), job=next(self.ids), program=one, left_s=self.work(one)
            )
            for one in self.chance.choices(programs, k=self.jobs)
        ]
        heapq.heapify(waiting)
        while waiting:
            again = self.run(heapq.heappop(waiting))
            if again is not None and again.at < year.end:
                heapq.heappush(waiting, again)
        use = min(1.0, year.used_s / (year.nodes * (year.end - year.begin)))
        for node, own in enumerate(self.faults):
            for fault in own:
                self.note_outage(node, fault, use)
        return year

    def work(self, program: Program) -> float:
        """Return how long the program's next run would take; a few are much longer than usual."""
        longer = self.chance.uniform(1.5, 8) if self.chance.random() < self.longer else 1.0
        return program.work_s * min(1.6, self.chance.lognormvariate(0, 0.25)) * longer

    def take(self, asked: Submission) -> tuple[float, list[int]]:
        """Return when the job starts, and on which nodes: the first ones that are free and in service."""
        start, nodes = asked.at, list[int]()
        while len(nodes) < asked.program.nodes:
            free, node = heapq.heappop(self.free)
            start = max(start, free)
            fault = self.fault_at(node, start)
            if fault is not None:
                heapq.heappush(self.free, (fault.back, node))
            else:
                nodes.append(node)
        return start + self.chance.uniform(1, 60), nodes

    def fault_at(self, node: int, at: float) -> HiddenFault | None:
        """Return the fault that the node has at that time."""
        place = bisect_right(self.starts[node], at) - 1
        return self.faults[node][place] if place >= 0 and self.faults[node][place].back > at else None

    def first_fault(self, nodes: list[int], start: float, end: float) -> tuple[int, HiddenFault] | None:
        """Return the first fault that ends a job on these nodes, and its node."""
        found = []
        for node in nodes:
            place = bisect_right(self.starts[node], start)
            for fault in self.faults[node][place : place + 3]:
                if fault.at < end and fault.cause != "clean_up":
                    found.append((fault.at, node, fault))
        if not found:
            return None
        _, node, fault = min(found, key=lambda each: each[:2])
        return node, fault

    def run(self, asked: Submission) -> Submission | None:
        """Run the job once. Return its next submission, if it has one."""
        chance, program = self.chance, asked.program
        start, nodes = self.take(asked)
        if start >= self.year.end:
            self.give_back(nodes, start)
            return None
        hang = start + chance.uniform(0, asked.left_s) if chance.random() < program.hangs else None
        limit = start + program.limit_s
        wanted = float("inf") if program.fills_its_limit or hang is not None else start + asked.left_s
        fault = self.first_fault(nodes, start, min(wanted, limit))
        if fault is not None:
            return self.hit(asked, start, nodes, *fault)
        if wanted >= limit:
            if hang is not None and limit < self.year.end:
                self.year.truth["hang"] += program.nodes * max(0.0, limit - hang - self.hang_found_s)
            self.note(asked, start, limit, "TIMEOUT", nodes)
        elif chance.random() < 0.08:
            self.note(asked, start, start + (wanted - start) * chance.random(), "FAILED", nodes)
        else:
            self.note(asked, start, wanted, "COMPLETED", nodes)
        return None

    def hit(
        self, asked: Submission, start: float, nodes: list[int], node: int, fault: HiddenFault
    ) -> Submission | None:
        """End the run by a node's fault: as Slurm sees it, or at once by the program's own error."""
        chance, program, truth = self.chance, asked.program, self.year.truth
        by_itself = chance.random() < 0.3
        end = fault.at + chance.uniform(5, 60) if by_itself else fault.down
        self.note(asked, start, end, "FAILED" if by_itself else "NODE_FAIL", nodes)
        worked = max(0.0, fault.at - start)
        kept = worked - worked % program.saves_every_s if program.saves_every_s < worked else 0.0
        if end >= self.year.end:
            return None
        if not by_itself:
            truth["find"] += program.nodes * max(0.0, fault.down - fault.at - STEWARD_NOTICES_S)
        if self.is_proposed(node, fault) and chance.random() < self.heeded:
            truth["lemons"] += program.nodes * (worked - kept)
        left = max(60.0, asked.left_s - kept)
        if program.requeues and not by_itself:
            truth["resume"] += 120
            return Submission(at=end + 121, job=asked.job, program=program, left_s=left)
        delay = HOUR_S * chance.lognormvariate(1.0, 1.0)
        truth["resume"] += delay if chance.random() < self.wanted else 0.0
        return Submission(at=end + delay, job=next(self.ids), program=program, left_s=left)

    def give_back(self, nodes: list[int], at: float) -> None:
        """Let other jobs have the nodes."""
        for node in nodes:
            heapq.heappush(self.free, (at, node))

    def is_proposed(self, node: int, fault: HiddenFault) -> bool:
        """Return whether the node is a lemon that had three faults within four weeks before."""
        before = [at for at in self.starts[node] if at < fault.at]
        near = (last - first < 28 * DAY_S for first, last in zip(before, before[2:], strict=False))
        return node in self.lemons and any(near)

    def note(self, asked: Submission, start: float, end: float, state: str, nodes: list[int]) -> None:
        """Write the run's line, and give its nodes back."""
        year, program = self.year, asked.program
        self.give_back(nodes, end)
        year.used_s += program.nodes * (min(end, year.end) - start)
        ended = "Unknown" if end >= year.end else str(int(end))
        tres = f"cpu={64 * program.nodes},gres/gpu={8 * program.nodes},node={program.nodes}"
        shown = "RUNNING" if end >= year.end else state
        row = (
            *(
                asked.job,
                program.user,
                "gpu" if program.nodes > 1 else "small",
                shown,
                int(asked.at),
                int(start),
                ended,
            ),
            *(program.nodes, program.limit_s // 60, tres, ",".join(f"n{node}" for node in nodes), "", program.name),
        )
        year.jobs.append((int(min(end, year.end - 1)), SEPARATOR.join(map(str, row))))

    def note_outage(self, node: int, fault: HiddenFault, use: float) -> None:
        """Write the event of a node, and what a repair would have saved."""
        year = self.year
        if fault.down >= year.end:
            return
        state, reason = REASONS[fault.cause]
        ended = "Unknown" if fault.back >= year.end else str(int(fault.back))
        row = (f"n{node}", int(fault.down), ended, state, "slurm(64030)", reason)
        year.events.append(SEPARATOR.join(map(str, row)))
        if fault.is_curable:
            repair_s = self.repair_s * self.chance.lognormvariate(0, 0.3)
            year.truth["repair"] += use * max(0.0, min(fault.back, year.end) - fault.down - repair_s)
