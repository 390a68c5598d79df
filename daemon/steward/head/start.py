"""Reads the settings, puts the head together and lets it serve."""

import logging
import os
import sys
from pathlib import Path

from steward.adapters.settings_file import load
from steward.head.choose import start_logging
from steward.head.serve import serve
from steward.head.wiring import wire
from steward.model.settings import SettingsError
from steward.ports import PortError


def start(config: Path | None, log_level: str) -> int:
    """The exit status of `stewardd`."""
    start_logging(logging.getLevelName(log_level.upper()))
    try:
        settings = load(config, os.environ)
        return serve(wire(settings), settings)
    except SettingsError as error:
        print(f"stewardd: {error}", file=sys.stderr)
        return 2
    except (PortError, OSError) as error:
        print(f"stewardd: {error}", file=sys.stderr)
        return 1
