"""`steward-agent`, or `python -m steward.agent`: the daemon of a compute node."""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from steward.agent.config import AgentConfig, ConfigError, load
from steward.agent.wiring import run_agent
from steward.ports import PortError

DEFAULT_CONFIG = "/etc/steward/steward.toml"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0 after SIGTERM or SIGINT, 2 for wrong settings, 1 when the agent cannot run."""
    options = _options(argv)
    logging.basicConfig(level=options.log_level.upper(), format="%(levelname)s %(name)s %(message)s", stream=sys.stderr)
    try:
        config = load(options.config, os.environ)
        asyncio.run(_until_told(config, options.node))
    except ConfigError as error:
        print(f"steward-agent: {error}", file=sys.stderr)
        return 2
    except PortError as error:
        print(f"steward-agent: {error}", file=sys.stderr)
        return 1
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="steward-agent", description="Steward's agent on a compute node.")
    where = Path(os.environ.get("STEWARD_CONFIG") or DEFAULT_CONFIG)
    parser.add_argument("--config", type=Path, default=where, metavar="FILE", help=f"settings (now: {where})")
    parser.add_argument("--node", default="", metavar="NAME", help="Slurm's name of this node (default: hostname -s)")
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    return parser.parse_args(argv)


async def _until_told(config: AgentConfig, node: str) -> None:
    work = asyncio.ensure_future(run_agent(config, node=node))
    for told in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(told, work.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work


if __name__ == "__main__":
    sys.exit(main())
