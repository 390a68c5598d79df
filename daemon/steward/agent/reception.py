"""The desks behind the agent's socket, and the dispatch of requests to them."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from steward.adapters.files import read_json, write_json
from steward.adapters.wire.deep_messages import DeepLine, deep_frame, deep_of
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.shimline import OK, Request
from steward.adapters.wire.verdict_line import FINE, UNKNOWN, VerdictLine, bad_line
from steward.agent.desk import JobDesk
from steward.agent.link import HeadConnection
from steward.model.deep import MAX_MEASURES, DeepReport, Measure
from steward.model.health import Finding, Incarnation, Outcome, Scope
from steward.model.ids import NodeName
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

# The results of the runner of a deep check: kept until the boot ends, and sent to every new head.

MAX_RUNS = 3


class DeepDesk:
    """The desk for results of deep checks: only `trusted` users (root, SlurmUser), and only about this node."""

    def __init__(
        self,
        *,
        node: NodeName,
        incarnation: Incarnation,
        clock: Clock,
        head: HeadConnection,
        trusted: frozenset[int],
        path: Path,
    ) -> None:
        self._node = node
        self._boot = incarnation.boot
        self._clock = clock
        self._head = head
        self._trusted = trusted
        self._path = path
        self._reports = {one.run: one for one in _read(path, self._boot, node)}

    async def serve(self, line: DeepLine, peer: int) -> bytes | None:
        """Keep a result and return OK; return None to hang up if the user or the node is wrong."""
        if peer not in self._trusted:
            log.warning("deep refused run=%s uid=%d why='neither root nor SlurmUser'", line.run, peer)
            return None
        if line.node != self._node:
            log.warning("deep refused run=%s why='it is of the node %s'", line.run, line.node)
            return None
        self._store(self._updated(line))
        return OK

    def frames(self) -> tuple[Frame, ...]:
        """Return the reports for a newly connected head."""
        return tuple(deep_frame(one) for one in self._reports.values())

    def _updated(self, line: DeepLine) -> DeepReport:
        report = self._reports.get(line.run) or DeepReport(run=line.run, node=self._node)
        at = self._clock.now()
        if line.measure is None:
            return replace(report, progress=line.progress, is_done=line.is_done or report.is_done, at=at)
        measures = [one for one in report.measures if _subject(one) != _subject(line.measure)]
        if len(measures) >= MAX_MEASURES:
            passed = (at for at, one in enumerate(measures) if one.outcome is Outcome.PASSED)
            del measures[next(passed, 0)]
        return replace(report, measures=(*measures, line.measure), at=at)

    def _store(self, report: DeepReport) -> None:
        others = [one for run, one in self._reports.items() if run != report.run]
        newest = sorted(others, key=lambda one: one.at)[-(MAX_RUNS - 1) :]
        self._reports = {one.run: one for one in (*newest, report)}
        self._head.post(deep_frame(report))
        try:
            write_json(self._path, {"boot": self._boot, "reports": list(self.frames())})
        except PortError as error:
            log.warning("deep measures not saved why=%r", str(error))


def _subject(measure: Measure) -> tuple[str, NodeName, NodeName | None]:
    """Return the subject of a measure: a second measure of the same subject replaces the first."""
    return measure.check, measure.node, measure.partner


def _read(path: Path, boot: str, node: NodeName) -> Iterator[DeepReport]:
    kept = read_json(path)
    if not isinstance(kept, dict) or kept.get("boot") != boot:
        return
    for frame in kept.get("reports", []):
        try:
            yield deep_of(frame, node)
        except (PortError, AttributeError) as error:
            log.warning("deep report dropped from=%s why=%r", path, str(error))


# The verdict on this node for Slurm's hooks: the worst current finding, at once and without a look.


_DRAIN = "drain"


class VerdictDesk:
    """The desk for Slurm's hooks: the verdict on this node, from the current `findings`.

    Until `known` returns true (every check has a result) no node is fine. `mode` returns the site's setting for a
    check: a check that only reports refuses no job.
    """

    def __init__(
        self, *, findings: Callable[[], tuple[Finding, ...]], known: Callable[[], bool], mode: Callable[[str], str]
    ) -> None:
        self._findings, self._known = findings, known
        self._mode = mode

    def serve(self, peer: int) -> bytes:
        """Return the verdict as the last line for the caller."""
        findings = self._findings()
        worst = max(filter(self._refuses_jobs, findings), key=lambda one: one.severity.rank, default=None)
        if worst is not None:
            log.info("verdict bad check=%s severity=%s peer=%d", worst.check, worst.severity.value, peer)
            return bad_line(worst.severity, worst.check, worst.text)
        return FINE if self._known() and any(one.outcome is Outcome.PASSED for one in findings) else UNKNOWN

    def _refuses_jobs(self, finding: Finding) -> bool:
        return finding.is_bad and finding.scope is Scope.NODE and self._mode(finding.check) == _DRAIN


class Reception:
    """The dispatch of requests on the agent's socket to the desks."""

    def __init__(self, *, desk: JobDesk, deep: DeepDesk, verdict: VerdictDesk) -> None:
        self._desk = desk
        self._deep = deep
        self._verdict = verdict

    async def serve(self, request: Request, peer: int) -> bytes | None:
        """Return the last line for the caller, None to hang up."""
        match request:
            case VerdictLine():
                return self._verdict.serve(peer)
            case DeepLine():
                return await self._deep.serve(request, peer)
            case _:
                return await self._desk.serve(request, peer)
