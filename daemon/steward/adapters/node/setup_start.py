"""Starts and cleans up after the runner of lifecycle scripts."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from steward.adapters.node.setup_dir import SetupDir
from steward.adapters.proc import is_alive
from steward.adapters.process import run

_TIMEOUT_S = 60.0
_PASSED_ON = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "TMPDIR", "SLURM_CONF")
_PASSED_PREFIXES = ("AWS_", "STEWARD_")


class Starter:
    """Starts the runner so that it outlives the agent.

    A service of systemd gets a unit of its own: the agent's is ended as a whole, and its restrictions (no new
    privileges, last to be killed for memory) are not for a site's scripts nor for the daemons that they start.
    """

    def __init__(self, *, systemd: Path = Path("/run/systemd/system"), env: Mapping[str, str] = os.environ) -> None:
        """`systemd` exists where it runs; `env` is the agent's environment."""
        self._is_service = systemd.is_dir() and "INVOCATION_ID" in env
        self._env = env

    def start(self, setup: SetupDir) -> None:
        """Returns when the runner has begun, or had ended before. Raises Retryable when it could not."""
        argv = [sys.executable, "-m", "steward.lifecycle", "run", str(setup.root), setup.token]
        unit = _unit(setup.token, self._env) if self._is_service else ()
        run([*unit, *argv], timeout_s=_TIMEOUT_S)

    def sweep(self, setup: SetupDir) -> None:
        """End the script that a runner which was cut off has left behind."""
        script = setup.script()
        if script is not None and is_alive(script):
            with suppress(ProcessLookupError):
                os.killpg(script.pid, signal.SIGKILL)


def _unit(token: str, env: Mapping[str, str]) -> Sequence[str]:
    """The words before the runner's argv. A forking service has begun when its first process ends; what scripts leave
    in the background is not ended with it."""
    properties = ("Type=forking", "KillMode=process", "OOMPolicy=continue", "TimeoutStartSec=60")
    names = sorted(name for name in env if name.upper() in _PASSED_ON or name.startswith(_PASSED_PREFIXES))
    return (
        "systemd-run",
        "--quiet",
        "--collect",
        f"--unit=steward-setup-{token}",
        *(f"--property={each}" for each in properties),
        *(f"--setenv={name}" for name in names),
        "--",
    )
