"""Slurm's own settings, as `scontrol show config` and the files beside slurm.conf say them."""

import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from steward.adapters.slurm.commands import SlurmCommands
from steward.adapters.slurm.words import settings_in, words_of
from steward.ports import PortError

_MAX_BYTES = 1 << 20
_ASK_AGAIN_S, _NO_ANSWER_S = 60.0, 5.0
_PING = re.compile(r"^Slurmctld\([^)]*\) at (?P<host>\S+) is (?P<state>\S+)", re.MULTILINE)
_TOPOLOGIES = ("topology/tree", "topology/block")
"""The plugins that place jobs by the nodes of a topology file."""


class SlurmConfig:
    """`scontrol show config`, and the files beside slurm.conf. Raises Retryable if scontrol fails."""

    def __init__(self, *, conf: Path, timeout_s: float = 10.0) -> None:
        self._conf = conf
        self._commands = SlurmCommands(conf=str(conf), timeout_s=timeout_s, max_bytes=_MAX_BYTES)

    def config(self) -> dict[str, str]:
        """Return each setting with its value in slurmctld."""
        return settings_in(self._show("config"))

    def controller(self) -> str:
        """Return the host of the slurmctld that is in control: the first that answers; empty if none does."""
        # A primary that comes back takes control again; scontrol lists it first.
        answer = self._commands.read("scontrol", "ping")
        return next((found["host"] for found in _PING.finditer(answer) if found["state"] == "UP"), "")

    def topology(self, config: Mapping[str, str]) -> str:
        """Return `scontrol show topology`; empty where Slurm has no topology of switches or blocks."""
        return self._show("topology") if config.get("TopologyPlugin", "") in _TOPOLOGIES else ""

    def _show(self, what: str) -> str:
        """Return what `scontrol show` prints. Raises PortError."""
        return self._commands.read("scontrol", "show", what)

    def plugstack(self, config: dict[str, str]) -> tuple[Path, str | None]:
        """Return the path of plugstack.conf (`PlugStackConfig` or the default) and its text; None: not readable."""
        named = config.get("PlugStackConfig", "")
        path = Path(named) if named.startswith("/") else self._conf.parent / "plugstack.conf"
        try:
            return path, path.read_text(encoding="utf-8", errors="replace")[:_MAX_BYTES]
        except OSError:
            return path, None


class Privacy:
    """Slurm's setting of whether users see each other's jobs (PrivateData). Safe to call from several threads.

    Slurm is asked at most once a minute, or again after a few seconds without an answer. Meanwhile its last answer
    holds; before the first one jobs are hidden.
    """

    def __init__(self, config: Callable[[], Mapping[str, str]], now: Callable[[], float]) -> None:
        self._config, self._now = config, now
        self._lock, self._said, self._due = threading.Lock(), True, float("-inf")

    def hides_jobs(self) -> bool:
        """Return whether users may not see each other's jobs."""
        with self._lock:
            if self._now() >= self._due:
                answer = self._ask()
                self._due = self._now() + (_ASK_AGAIN_S if answer is not None else _NO_ANSWER_S)
                self._said = self._said if answer is None else answer
            return self._said

    def _ask(self) -> bool | None:
        """Return Slurm's present answer; None if it gives none."""
        try:
            return not words_of(self._config().get("PrivateData", "jobs")).isdisjoint(("jobs", "all"))
        except PortError:
            return None
