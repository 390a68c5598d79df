"""Tasks of opted-in jobs that ended badly here, the last ones: told to the head at once, and on every connection."""

import logging
from collections import deque
from typing import Protocol

from steward.adapters.wire.frames import Frame
from steward.adapters.wire.job_messages import MAX_EXITS, exits_frame
from steward.adapters.wire.shimline import ExitLine
from steward.model.ids import NodeName
from steward.model.job_report import TaskExit
from steward.ports import Clock

log = logging.getLogger(__name__)


class Head(Protocol):
    def post(self, frame: Frame) -> None: ...


class Exits:
    def __init__(self, node: NodeName, head: Head, clock: Clock) -> None:
        self._node = node
        self._head = head
        self._clock = clock
        self._last: deque[TaskExit] = deque(maxlen=MAX_EXITS)

    def frames(self) -> tuple[Frame, ...]:
        return (exits_frame(self._last, self._clock.now()),) if self._last else ()

    def note(self, line: ExitLine) -> None:
        now = self._clock.now()
        ended = TaskExit(
            job=line.job,
            restart=line.restart,
            step=line.step,
            node=self._node,
            task=line.task,
            status=line.status,
            at=now,
        )
        self._last.append(ended)
        log.info("task ended badly job=%d step=%s task=%d status=%d", line.job, line.step, line.task, line.status)
        self._head.post(exits_frame((ended,), now))
