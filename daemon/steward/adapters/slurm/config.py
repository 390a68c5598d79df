"""Slurm's own settings, for `steward doctor`."""

from pathlib import Path

from steward.adapters.process import run

_MAX_BYTES = 1 << 20


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
        pairs = (line.partition("=") for line in done.text.splitlines() if "=" in line)
        return {key.strip(): value.strip() for key, _, value in pairs}

    def plugstack(self, config: dict[str, str]) -> tuple[Path, str | None]:
        """plugstack.conf as slurmctld's `PlugStackConfig` or the default names it, and its text; None: not readable."""
        named = config.get("PlugStackConfig", "")
        path = Path(named) if named.startswith("/") else self._conf.parent / "plugstack.conf"
        try:
            return path, path.read_text(encoding="utf-8", errors="replace")[:_MAX_BYTES]
        except OSError:
            return path, None
