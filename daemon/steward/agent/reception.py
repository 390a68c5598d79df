"""The desks behind the agent's socket, and which of them serves which request."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from steward.adapters.files import read_json, write_json
from steward.adapters.wire.deep_messages import DeepLine, deep_frame, deep_of
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.shimline import OK, Request
from steward.adapters.wire.verdict_line import FINE, UNKNOWN, VerdictLine, bad_line
from steward.agent.desk import Desk
from steward.agent.link import Head
from steward.model.deep import MAX_MEASURES, DeepReport, Measure
from steward.model.health import Finding, Incarnation, Outcome, Scope
from steward.model.ids import NodeName
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

# Where the runner of a deep check tells what it measured; kept until the boot ends, and told to every new head.

MAX_RUNS = 3


class DeepDesk:
    """Only `trusted` users (root, SlurmUser) may speak, and only of the node that this agent is of."""

    def __init__(
        self, *, node: NodeName, incarnation: Incarnation, clock: Clock, head: Head, trusted: frozenset[int], path: Path
    ) -> None:
        self._node = node
        self._boot = incarnation.boot
        self._clock = clock
        self._head = head
        self._trusted = trusted
        self._path = path
        self._reports = {one.run: one for one in _read(path, self._boot, node)}

    async def serve(self, line: DeepLine, peer: int) -> bytes | None:
        """OK when it is kept; None to hang up on who may not speak."""
        if peer not in self._trusted:
            log.warning("deep refused run=%s uid=%d why='neither root nor SlurmUser'", line.run, peer)
            return None
        if line.node != self._node:
            log.warning("deep refused run=%s why='it is of the node %s'", line.run, line.node)
            return None
        self._keep(self._with(line))
        return OK

    def frames(self) -> tuple[Frame, ...]:
        """The frames that a newly connected head must get."""
        return tuple(deep_frame(one) for one in self._reports.values())

    def _with(self, line: DeepLine) -> DeepReport:
        known = self._reports.get(line.run) or DeepReport(run=line.run, node=self._node)
        at = self._clock.now()
        if line.measure is None:
            return replace(known, progress=line.progress, is_done=line.is_done or known.is_done, at=at)
        measures = [one for one in known.measures if _what(one) != _what(line.measure)]
        if len(measures) >= MAX_MEASURES:
            passed = (at for at, one in enumerate(measures) if one.outcome is Outcome.PASSED)
            del measures[next(passed, 0)]
        return replace(known, measures=(*measures, line.measure), at=at)

    def _keep(self, report: DeepReport) -> None:
        others = [one for run, one in self._reports.items() if run != report.run]
        newest = sorted(others, key=lambda one: one.at)[-(MAX_RUNS - 1) :]
        self._reports = {one.run: one for one in (*newest, report)}
        self._head.post(deep_frame(report))
        try:
            write_json(self._path, {"boot": self._boot, "reports": list(self.frames())})
        except PortError as error:
            log.warning("deep measures not saved why=%r", str(error))


def _what(measure: Measure) -> tuple[str, NodeName, NodeName | None]:
    """The subject of a measure: a second one on the same subject takes the place of the first."""
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


# The verdict on this node for Slurm's hooks: the worst finding that stands now, at once and without a look.


_DRAIN = "drain"


class VerdictDesk:
    """`findings` are what stands; `known` says whether every check has told: until then no node is fine. `mode` is the
    site's word for a check: what is only reported refuses no job."""

    def __init__(
        self, *, findings: Callable[[], tuple[Finding, ...]], known: Callable[[], bool], mode: Callable[[str], str]
    ) -> None:
        self._findings, self._known = findings, known
        self._mode = mode

    def serve(self, peer: int) -> bytes:
        """The line for who asks."""
        findings = self._findings()
        worst = max(filter(self._counts, findings), key=lambda one: one.severity.rank, default=None)
        if worst is not None:
            log.info("verdict bad check=%s severity=%s peer=%d", worst.check, worst.severity.value, peer)
            return bad_line(worst.severity, worst.check, worst.text)
        return FINE if self._known() and any(one.outcome is Outcome.PASSED for one in findings) else UNKNOWN

    def _counts(self, finding: Finding) -> bool:
        return finding.is_bad and finding.scope is Scope.NODE and self._mode(finding.check) == _DRAIN


class Reception:
    def __init__(self, *, desk: Desk, deep: DeepDesk, verdict: VerdictDesk) -> None:
        self._desk = desk
        self._deep = deep
        self._verdict = verdict

    async def serve(self, request: Request, peer: int) -> bytes | None:
        """The last line for who asks, or None to hang up on them."""
        match request:
            case VerdictLine():
                return self._verdict.serve(peer)
            case DeepLine():
                return await self._deep.serve(request, peer)
            case _:
                return await self._desk.serve(request, peer)
