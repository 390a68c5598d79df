"""Where the runner of a deep check tells what it measured; kept until the boot ends, and told to every new head."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from steward.adapters.jsonfile import read_json, write_json
from steward.adapters.wire.deep_line import DeepLine
from steward.adapters.wire.deep_messages import deep_frame, deep_of
from steward.adapters.wire.frames import Frame
from steward.adapters.wire.shimline import OK
from steward.agent.desk import Head
from steward.model.deep import MAX_MEASURES, DeepReport, Measure
from steward.model.health import Incarnation, Outcome
from steward.model.ids import NodeName
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

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
        """What a head that we have just connected to must hear."""
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
    """What a measure is about: said again, it takes the place of what was said before."""
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
