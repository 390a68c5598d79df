"""The checks of this node: when each looks, what stands, and what the head is told."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from steward.adapters.messages import report_frame
from steward.adapters.wire import Frame
from steward.agent.together import together
from steward.agent.track import Track
from steward.checks.check import Check
from steward.model.health import Finding
from steward.ports import Clock

log = logging.getLogger(__name__)

FIRST_REPORT_S = 10.0
TRAVEL_S = 0.2
"""Of a check-now's budget, kept for the way back."""
MAX_BUDGET_S = 60.0
_REFRESH_S = 5.0


class Watch(Protocol):
    """A source of event findings."""

    def findings(self) -> tuple[Finding, ...]: ...

    async def run(self) -> None: ...


class Senses:
    """`catalogue` gives the checks that shall run now, and a finding for each that cannot; it is asked again and again
    (site checks come and go). `track` makes the runner of one."""

    def __init__(
        self,
        *,
        catalogue: Callable[[], tuple[tuple[Check, ...], tuple[Finding, ...]]],
        track: Callable[[Check], Track],
        watches: Iterable[Watch],
        clock: Clock,
        post: Callable[[Frame], None],
    ) -> None:
        self._catalogue = catalogue
        self._track = track
        self._watches = tuple(watches)
        self._clock = clock
        self._post = post
        self._tracks: dict[str, Track] = {}
        self._refused: tuple[Finding, ...] = ()
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._answers: set[asyncio.Task[None]] = set()
        self._bell = asyncio.Event()
        self._reported: object = None
        self._started = clock.now()
