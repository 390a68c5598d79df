"""`steward assess`, also alone: `python3 steward-assess.pyz --since 90d`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .answer import answer
from .ask import AskedSlurm, AskError, KeptAnswers
from .lines import lines
from .look import look
from .options import CHOICES, assumptions_of, begin_of, price_of
from .page import page


def main(words: Sequence[str] | None = None) -> int:
    """Assess, and print what was found. Return the exit status."""
    parser = argparse.ArgumentParser(
        prog="steward-assess",
        description="What faults have cost on this Slurm cluster, and what Steward would have saved. Changes nothing.",
        allow_abbrev=False,
    )
    for one in CHOICES:
        if one.metavar is None:
            parser.add_argument(f"--{one.name}", action="store_true", help=one.help)
        else:
            action = "append" if one.is_repeatable else "store"
            parser.add_argument(f"--{one.name}", action=action, metavar=one.metavar, default=one.default, help=one.help)
    said = {name.replace("_", "-"): value for name, value in vars(parser.parse_args(words)).items()}
    try:
        print(assess(said), end="")
    except AskError as error:
        print(f"steward-assess: {error}", file=sys.stderr)
        return 1
    return 0


def assess(said: Mapping[str, Any]) -> str:
    """Return what is printed, for the values of `CHOICES`. Raises AskError with what is wrong, and what to do."""
    now = int(time.time())
    assumptions, price = assumptions_of(said["assume"] or ()), price_of(said["per-node-hour"])
    if said["from"]:
        source: Any = KeptAnswers(Path(said["from"]))
    else:
        keep, log = (Path(said[name]) if said[name] else None for name in ("keep", "log"))
        source = AskedSlurm(begin_of(said["since"], now), now, keep, log)
    past, gaps = look(source)
    found = answer(past, assumptions, price, gaps)
    if said["html"]:
        _write(Path(said["html"]), page(found))
    if said["json"]:
        return json.dumps(found, indent=2) + "\n"
    return "" if said["html"] else "\n".join(lines(found)) + "\n"


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AskError(f"{file}: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main())
