"""The agent's process: logging, settings, signals."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from pathlib import Path

from steward.agent.config import AgentConfig, ConfigError, load
from steward.agent.wiring import run_agent
from steward.ports import PortError


def start(settings: Path, node: str, log_level: str) -> int:
    """Run the agent until a signal ends it, and return its exit status."""
    gc.freeze()  # the collector, off until now, skips the imported objects
    gc.enable()
    logging.basicConfig(level=log_level.upper(), format="%(levelname)s %(name)s %(message)s", stream=sys.stderr)
    try:
        config = load(settings, os.environ)
        asyncio.run(_run_until_signal(config, node))
    except ConfigError as error:
        print(f"steward-agent: {error}", file=sys.stderr)
        return 2
    except PortError as error:
        print(f"steward-agent: {error}", file=sys.stderr)
        return 1
    return 0


async def _run_until_signal(config: AgentConfig, node: str) -> None:
    agent = asyncio.ensure_future(run_agent(config, node=node))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, agent.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await agent
