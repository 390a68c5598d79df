"""Slurm's own settings, as `steward doctor` and whoever asks for a user's pages need them; and all that an installation
needs to know of the Slurm cluster of this machine."""

import pwd
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from steward.adapters.process import run
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.adapters.slurm.words import settings_in, words_of
from steward.model.slurm_site import SlurmSite
from steward.ports import PortError

_MAX_BYTES = 1 << 20
_ASK_AGAIN_S = 60.0


class SlurmConfig:
    """`scontrol show config`, and the files that lie beside slurm.conf. Raises Retryable where it cannot be had."""

    def __init__(self, *, conf: Path, timeout_s: float = 10.0) -> None:
        self._conf, self._timeout_s = conf, timeout_s

    def config(self) -> dict[str, str]:
        """Setting -> value as slurmctld uses it."""
        done = run(
            ["scontrol", "show", "config"],
            timeout_s=self._timeout_s,
            env={"SLURM_CONF": str(self._conf), "LC_ALL": "C.UTF-8"},
            max_bytes=_MAX_BYTES,
        )
        return settings_in(done.text)

    def plugstack(self, config: dict[str, str]) -> tuple[Path, str | None]:
        """plugstack.conf as slurmctld's `PlugStackConfig` or the default names it, and its text; None: not readable."""
        named = config.get("PlugStackConfig", "")
        path = Path(named) if named.startswith("/") else self._conf.parent / "plugstack.conf"
        try:
            return path, path.read_text(encoding="utf-8", errors="replace")[:_MAX_BYTES]
        except OSError:
            return path, None


class Privacy:
    """Whether Slurm keeps users from seeing each other's jobs (PrivateData). Asked at most once a minute; where Slurm
    does not answer its last word holds, and before its first they do not see them. Safe in several threads."""

    def __init__(self, config: Callable[[], Mapping[str, str]], now: Callable[[], float]) -> None:
        self._config, self._now = config, now
        self._lock, self._said, self._asked = threading.Lock(), True, float("-inf")

    def hides_jobs(self) -> bool:
        with self._lock:
            if abs(self._now() - self._asked) >= _ASK_AGAIN_S:
                self._asked = self._now()
                self._said = self._ask()
            return self._said

    def _ask(self) -> bool:
        try:
            return not words_of(self._config().get("PrivateData", "jobs")).isdisjoint(("jobs", "all"))
        except PortError:
            return self._said


def survey(conf: Path, timeout_s: float, logins: Iterable[str] = ()) -> SlurmSite:
    """Asks slurmctld. Raises Retryable where it does not answer, Permanent where this Slurm is too old."""
    slurm = CommandLineSlurm(conf=str(conf), timeout_s=timeout_s)
    asked = SlurmConfig(conf=conf, timeout_s=timeout_s)
    config = asked.config()
    site = SlurmSite(
        config=config,
        nodes=slurm.nodes(),
        partitions={name: each.nodes for name, each in slurm.partitions().items()},
        plugstack=asked.plugstack(config)[1] or "",
    )
    names = {site.slurm_user, *logins}
    return replace(site, logins=frozenset(filter(_exists, names)))


def _exists(login: str) -> bool:
    try:
        pwd.getpwnam(login)
    except (KeyError, ValueError):
        return False
    return True
