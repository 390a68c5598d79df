"""The checks of this node: when each looks, what stands, and what the head is told."""

import asyncio
from collections.abc import Callable

from steward.adapters.messages import report_frame
from steward.adapters.wire import Frame
from steward.model.health import Finding


class Senses:
    def __init__(self, *, post: Callable[[Frame], None]) -> None:
        self._post = post
        self._findings: tuple[Finding, ...] = ()

    def frames(self) -> tuple[Frame, ...]:
        return (report_frame(self._findings, None),)

    def check_now(self, request: str, budget_s: float) -> None:
        self._post(report_frame(self._findings, request))

    async def run(self) -> None:
        await asyncio.Event().wait()
