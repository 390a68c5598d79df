"""Notes that checks made for themselves (strikes, ports that were up once): it outlives the agent and goes with the
boot."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steward.adapters.whole_file import read_json, write_json
from steward.checks.past import NO_NOTES, Notes
from steward.model.health import Incarnation
from steward.ports import Clock, PortError

log = logging.getLogger(__name__)

SAVE_EVERY_S = 10.0
MAX_NAMES = 512
MAX_TIMES = 64
"""The most notes of one check: names, and numbers below each; the newest stay."""


class CheckMemory:
    """Keeps notes in the file `path`, which is written at most every 10 s and only when something is new.

    Whoever removes the file makes the checks forget, strikes too, at their next look.
    """

    def __init__(self, path: Path, *, incarnation: Incarnation, clock: Clock) -> None:
        self._path = path
        self._whose = [incarnation.instance, incarnation.boot]
        self._clock = clock
        self._saved_at: float | None = None
        self._is_dirty = False
        self._notes = self._restored()
        self._was_there = self._path.exists()

    def of(self, check: str) -> Notes:
        """The check's last notes, of this boot of this machine."""
        if self._was_there and not self._path.exists():
            log.warning("checks forget path=%s why=%r", self._path, "the file was removed")
            self._notes, self._was_there, self._is_dirty = {}, False, False
        return self._notes.get(check, NO_NOTES)

    def keep(self, check: str, notes: Notes) -> None:
        """In place of what the check noted before. Never raises: what cannot be written is tried at the next look."""
        bounded = {name: tuple(times[-MAX_TIMES:]) for name, times in list(notes.items())[:MAX_NAMES]}
        if bounded != self._notes.get(check, NO_NOTES):
            self._notes[check] = bounded
            self._is_dirty = True
        if self._is_dirty and self._may_save():
            self._save()

    def _may_save(self) -> bool:
        return self._saved_at is None or abs(self._clock.now() - self._saved_at) >= SAVE_EVERY_S

    def _save(self) -> None:
        self._saved_at = self._clock.now()
        try:
            write_json(self._path, {"whose": self._whose, "notes": self._notes})
            self._is_dirty, self._was_there = False, True
        except PortError as error:
            log.warning("notes of checks not saved why=%r", str(error))

    def _restored(self) -> dict[str, Notes]:
        state = read_json(self._path)
        if not isinstance(state, dict) or state.get("whose") != self._whose:
            return {}
        try:
            return {str(check): _notes_of(record) for check, record in state["notes"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.warning("notes of checks dropped why=%r", str(error))
            return {}


def _notes_of(record: Mapping[str, Any]) -> Notes:
    return {str(name): tuple(float(time) for time in times) for name, times in record.items()}
