"""`stewardd`, or `python -m steward.head`: the daemon of the controller."""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Run the head. Return 0 after SIGTERM or SIGINT, 2 for wrong settings, 1 if the head cannot run."""
    options = _options(argv)
    # The modules imported until the head serves stay for good: searching them for garbage takes a sixth of the start.
    gc.disable()
    status: int = import_module("steward.head.serve").start(options.config, options.log_level)
    return status


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="stewardd",
        description="Steward's head: repairs nodes, brings jobs back.",
        epilog="Example: stewardd --config /etc/steward/steward.toml --log-level debug",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings (else STEWARD_CONFIG, else the default)")
    level = os.environ.get("STEWARD_LOG_LEVEL", "info")
    parser.add_argument("--log-level", default=level, choices=("debug", "info", "warning", "error"))
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
