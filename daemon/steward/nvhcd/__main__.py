"""`python -m steward.nvhcd`: answer NVIDIA's ft_launcher with the agent's verdict on this node (docs/hooks.md)."""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from steward.model.text import cause
from steward.ports import Permanent

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
    return asyncio.run(_serve(options.socket, options.agent))


async def _serve(socket: Path, agent: Path) -> int:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for each in _ENDS:
        loop.add_signal_handler(each, ended.set)
    service = HealthService(socket, agent)
    try:
        await service.start()
    except (OSError, Permanent) as error:
        print(f"steward.nvhcd: cannot listen at {socket}: {cause(error)}", file=sys.stderr)
        return 1
    log.info("listening socket=%s agent=%s", socket, agent)
    await ended.wait()
    await service.stop()
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m steward.nvhcd", description=__doc__)
    parser.add_argument("--socket", type=Path, default=SOCKET, metavar="PATH", help=f"where to listen ({SOCKET})")
    parser.add_argument("--agent", type=Path, default=AGENT, metavar="PATH", help=f"the agent's socket ({AGENT})")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
