"""`steward-agent`, or `python -m steward.agent`: the daemon of a compute node."""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from steward.adapters.settings_path import settings_path


def main(argv: Sequence[str] | None = None) -> int:
    """Run the agent; return 0 after SIGTERM or SIGINT, 2 for wrong settings, 1 when the agent cannot run."""
    options = _options(argv)
    sys.modules["ssl"] = None  # type: ignore[assignment]  # no TLS here: asyncio does not load ssl (4 MiB)
    gc.disable()  # until the agent serves: collecting among imported objects takes 1/7 of the start
    status: int = import_module("steward.agent.serve").start(options.config, options.node, options.log_level)
    return status


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="steward-agent",
        description="Steward's agent on a compute node.",
        epilog="Example: steward-agent --node n17 --log-level debug",
    )
    where = settings_path(None, os.environ)
    parser.add_argument("--config", type=Path, default=where, metavar="FILE", help=f"settings (now: {where})")
    parser.add_argument("--node", default="", metavar="NAME", help="Slurm's name of this node (default: by slurm.conf)")
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
