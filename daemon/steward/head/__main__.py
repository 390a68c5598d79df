"""`stewardd`, or `python -m steward.head`: the daemon of the controller."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from steward.adapters.settings_file import load
from steward.head.choose import start_logging
from steward.head.serve import serve
from steward.head.wiring import wire
from steward.model.settings import SettingsError
from steward.ports import PortError

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0 after SIGTERM or SIGINT, 2 for wrong settings, 1 when the head cannot run."""
    options = _options(argv)
    start_logging(logging.getLevelName(options.log_level.upper()))
    try:
        settings = load(options.config, os.environ)
        return serve(wire(settings), settings)
    except SettingsError as error:
        print(f"stewardd: {error}", file=sys.stderr)
        return 2
    except (PortError, OSError) as error:
        print(f"stewardd: {error}", file=sys.stderr)
        return 1


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="stewardd", description="Steward's head: repairs nodes, brings jobs back.")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings (else STEWARD_CONFIG, else the default)")
    level = os.environ.get("STEWARD_LOG_LEVEL", "info")
    parser.add_argument("--log-level", default=level, choices=("debug", "info", "warning", "error"))
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
