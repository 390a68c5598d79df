"""`python -m steward.nvhcd`: answer NVIDIA's ft_launcher with the agent's verdict on this node (docs/hooks.md)."""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from steward.model.text import cause

try:
    from steward.nvhcd.server import HealthService
except ModuleNotFoundError as error:
    sys.exit(f"steward.nvhcd: {error}: pip install 'steward-slurm[nvrx]'")

SOCKET = Path("/run/steward/nvhcd/nvhcd.sock")
AGENT = Path("/run/steward/agent.sock")
_ENDS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger("steward.nvhcd")


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT, and return exit status 0, or 1 if the socket cannot be made."""
    options = _options(argv)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s", stream=sys.stderr)
    # blocked before any thread starts: a handler that sets an Event hangs for ever if the signal comes in Event.wait
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    service = HealthService(options.socket, options.agent)
    try:
        service.start()
    except OSError as error:
        print(f"steward.nvhcd: cannot listen at {options.socket}: {cause(error)}", file=sys.stderr)
        return 1
    log.info("listening socket=%s agent=%s", options.socket, options.agent)
    signal.sigwait(_ENDS)
    service.stop()
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m steward.nvhcd", description=__doc__)
    parser.add_argument("--socket", type=Path, default=SOCKET, metavar="PATH", help=f"where to listen ({SOCKET})")
    parser.add_argument("--agent", type=Path, default=AGENT, metavar="PATH", help=f"the agent's socket ({AGENT})")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
