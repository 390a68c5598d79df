"""The site check that fails on command."""

from pathlib import Path

CHECK = "bed-fault"


def write_failing_check(directory: Path, text: str) -> None:
    """A check of ours in the node's drop-in directory that reports `text`."""
    message = (text or "failed on command of the test bed").replace("'", " ").replace("\n", " ")
    new = directory.parent / f"{CHECK}.new"
    new.write_text(f"#!/bin/sh\necho '{message}'\nexit 2\n")
    new.chmod(0o755)
    new.replace(directory / CHECK)


def remove_failing_check(directory: Path) -> None:
    (directory / CHECK).unlink(missing_ok=True)


def has_failing_check(directory: Path) -> bool:
    return (directory / CHECK).exists()
