"""The site check that fails on command."""

import shlex
from pathlib import Path

CHECK = "bed-fault"


def write_failing_check(directory: Path, text: str) -> None:
    """A check of ours in the node's drop-in directory that says `text` and asks for a new machine.

    Written beside, then renamed: the agent never runs half of it.
    """
    result = f"HEALTH_CHECK_RESULT:bed:Failed:replace:{text or 'failed on command of the test bed'}"
    new = directory.parent / f"{CHECK}.new"
    new.write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(result)}\n")
    new.chmod(0o755)
    new.replace(directory / CHECK)


def remove_failing_check(directory: Path) -> None:
    (directory / CHECK).unlink(missing_ok=True)


def has_failing_check(directory: Path) -> bool:
    return (directory / CHECK).exists()
