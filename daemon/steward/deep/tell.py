"""The report of this node's measures to its agent. A measure that could not be sent is sent with the next one."""

import logging
import math
import socket
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from steward.adapters.wire.deep_messages import measure_line, progress_line
from steward.model.deep import Measure
from steward.model.health import Outcome
from steward.model.ids import NodeName

log = logging.getLogger(__name__)

TIMEOUT_S = 2.0
LAST_TRIES = 5
"""The most tries to send the last line: the agent may be slow while the node is busy with the measurement."""
MAX_KEPT = 512
_OK = b"steward/1 ok\n"


class Teller:
    """Sends measures to the agent at `socket_path`. `last_text` are all measures so far, in order."""

    def __init__(self, socket_path: Path, run: str, node: NodeName) -> None:
        self._path = socket_path
        self._run = run
        self._node = node
        self._waiting: deque[bytes] = deque(maxlen=MAX_KEPT)
        self.last_text: list[Measure] = []

    def tell(self, measures: list[Measure]) -> bool:
        """Send the measures, and return whether the agent has received everything so far."""
        self.last_text += measures
        self._waiting.extend(measure_line(self._run, self._node, one) for one in measures)
        return self._flush()

    def progress(self, text: str, *, is_done: bool = False) -> bool:
        self._waiting.append(progress_line(self._run, self._node, text, is_done=is_done))
        return self._flush(LAST_TRIES if is_done else 1)

    def _flush(self, tries: int = 1) -> bool:
        while self._waiting:
            try:
                answer = _send_line(self._path, self._waiting[0])
            except OSError as error:
                tries -= 1
                if tries and isinstance(error, TimeoutError):
                    continue
                log.warning("cannot report to the agent at %s: %s", self._path, error)
                return False
            if answer != _OK:
                log.warning("the agent at %s refused a measure", self._path)
                return False
            self._waiting.popleft()
        return True


def _send_line(path: Path, line: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(TIMEOUT_S)
        sock.connect(str(path))
        sock.sendall(line)
        return sock.recv(256)


@dataclass(frozen=True, slots=True)
class MeasureMaker:
    """Maker of measures of `node`, or of its pair with `partner`."""

    node: NodeName
    partner: NodeName | None = None

    def good(self, check: str, value: float, unit: str, text: str = "", seconds: float = 0.0) -> Measure:
        return self.said(check, Outcome.PASSED, text, seconds, value, unit)

    def bad(self, check: str, text: str, value: float = math.nan, unit: str = "", seconds: float = 0.0) -> Measure:
        return self.said(check, Outcome.FAILED, text, seconds, value, unit)

    def unknown(self, check: str, text: str, seconds: float = 0.0) -> Measure:
        return self.said(check, Outcome.UNKNOWN, text, seconds)

    def skipped(self, check: str, text: str) -> Measure:
        return self.said(check, Outcome.SKIPPED, text)

    def said(
        self, check: str, outcome: Outcome, text: str, seconds: float = 0.0, value: float = math.nan, unit: str = ""
    ) -> Measure:
        return Measure(
            check=check,
            node=self.node,
            partner=self.partner,
            outcome=outcome,
            value=value,
            unit=unit,
            text=text,
            seconds=round(seconds, 2),
        )
