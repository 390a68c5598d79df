"""The changing part of the page, made once for all who look at it."""

import threading

from jinja2 import Template

from steward.api.page.view import page_view
from steward.api.source import Source
from steward.api.views import plan_view
from steward.workflows.cycle import dry_run
from steward.workflows.snapshot import Snapshot

_PLAN_S = 10.0
"""What would be done is worked out at most so often: for a big cluster that is the dear part."""


class Fragment:
    """Safe to ask from several threads."""

    def __init__(self, source: Source, template: Template, least_s: float) -> None:
        self._source, self._template, self._least_s = source, template, least_s
        self._lock = threading.Lock()
        self._html, self._made = "", 0.0
        self._of: Snapshot | None = None
        self._actions: list[dict[str, object]] = []
        self._planned: Snapshot | None = None
        self._planned_at = 0.0

    def html(self) -> str:
        """Raises Retryable before the head's first cycle has ended."""
        with self._lock:
            snapshot, now = self._source.snapshot(), self._source.clock.now()
            if snapshot is not self._of or not 0 <= now - self._made < self._least_s:
                view = page_view(self._source, snapshot, self._would_do(snapshot, now), now)
                self._html, self._made, self._of = self._template.render(**view), now, snapshot
            return self._html

    def _would_do(self, snapshot: Snapshot, now: float) -> list[dict[str, object]]:
        if self._planned is None or (snapshot is not self._planned and not 0 <= now - self._planned_at < _PLAN_S):
            plan = dry_run(self._source.plan, snapshot, self._source.want, now)
            self._actions = plan_view(plan, snapshot, now)["actions"]
            self._planned, self._planned_at = snapshot, now
        return self._actions
