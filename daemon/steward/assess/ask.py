"""Ask Slurm's commands, or the files in which an earlier look kept their answers. Nothing is changed in Slurm."""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from .log import tells_of_jobs
from .records import EVENT_FIELDS, JOB_FIELDS

SLICE_S = 7 * 86400
"""sacct is asked for so much time at once, so that no answer is a burden for slurmdbd."""
_ENVIRONMENT = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C.UTF-8"}
"""Times come in Unix seconds: no change of the clocks, and no user's own format, is in them."""


Slice = tuple[int, int, Iterable[str]]
"""Begin and end of a time, and the lines of sacct about it."""


def slices(since: int, until: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each answer of sacct."""
    for start in range(since, until, SLICE_S):
        yield start, min(start + SLICE_S, until)


class AskError(Exception):
    """An answer that did not come. Its text says whose, why, and what to do."""


class AskedSlurm:
    """The commands of Slurm. With `keep`, their answers are also written there."""

    def __init__(self, since: int, until: int, keep: Path | None = None, log: Path | None = None) -> None:
        self.since, self.until, self._keep, self._log = since, until, keep, log
        if keep is not None:
            _begin(keep, since, until)
        self._separator = f"\x1f{random.SystemRandom().randrange(10**9)}\x1f"

    def jobs(self) -> Iterator[Slice]:
        """Yield the answers of sacct, the oldest first."""
        known = set(" ".join(self._run("fields.txt", ["sacct", "--helpformat"])).split())
        wanted = ",".join(field for field in JOB_FIELDS if field in known)
        for start, end in slices(self.since, self.until):
            argv = ["sacct", "--allusers", "--duplicates", "--allocations", "--parsable2", f"--format={wanted}"]
            times = [f"--delimiter={self._separator}", f"--starttime={_utc(start)}", f"--endtime={_utc(end)}"]
            yield start, end, self._run(f"jobs-{start}.txt", [*argv, *times])

    def events(self) -> Iterable[str]:
        """Return the answer of sacctmgr about nodes."""
        wanted = ["--parsable2", f"start={_utc(self.since)}", f"format={','.join(EVENT_FIELDS)}"]
        return self._run("events.txt", ["sacctmgr", "show", "event", *wanted])

    def config(self) -> Iterable[str]:
        """Return Slurm's settings."""
        return self._run("config.txt", ["scontrol", "show", "config"])

    def nodes(self) -> Iterable[str]:
        """Return each node with its CPUs and its generic resources."""
        return self._run("nodes.txt", ["sinfo", "--noheader", "--all", "--Node", "--format=%N|%c|%G"])

    def log(self, usual: str) -> Iterator[str]:
        """Yield the lines of slurmctld's log that tell of jobs; `usual` is where slurm.conf has it."""
        with self._kept("log.txt") as kept:
            for line in read_lines(self._log or Path(usual)):
                if tells_of_jobs(line):
                    kept.write(line)
                    yield line

    def _run(self, name: str, argv: Sequence[str]) -> Iterator[str]:
        """Yield the lines that a command prints, and keep them. Raises AskError when it fails."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as told, self._kept(name) as kept:
            try:
                child = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=told,
                    env={**os.environ, **_ENVIRONMENT},
                    encoding="utf-8",
                    errors="replace",
                )
            except OSError as error:
                where = "run this on a host that has Slurm's commands"
                raise AskError(f"{argv[0]} does not start ({error.strerror}): {where}") from error
            with child:
                assert child.stdout is not None
                for line in child.stdout:
                    kept.write(line)
                    yield line
            if child.returncode:
                told.seek(0)
                why = " ".join(told.read(2000).split()) or f"exit status {child.returncode}"
                raise AskError(f"{' '.join(argv[:2])} failed: {why}")

    def _kept(self, name: str) -> TextIO:
        """Return the file that keeps this answer; nothing is written if none is wanted."""
        return open(os.devnull if self._keep is None else self._keep / name, "a", encoding="utf-8")


def _begin(folder: Path, since: int, until: int) -> None:
    """Make a folder for answers. Raises AskError if it cannot be made, or has answers of another look."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "asked.json", "x", encoding="utf-8") as file:
            json.dump({"since": since, "until": until}, file)
    except FileExistsError as error:
        raise AskError(f"{folder} has the answers of an earlier look: give another folder to --keep") from error
    except OSError as error:
        raise AskError(f"{folder}: {error.strerror}; give another folder to --keep") from error


class KeptAnswers:
    """The answers that an earlier look kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            asked = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
            self.since, self.until = int(asked["since"]), int(asked["until"])
        except OSError as error:
            raise AskError(f"{folder}: {error.strerror}; give a folder that --keep has written") from error
        except (ValueError, KeyError, TypeError) as error:
            raise AskError(f"{folder}/asked.json does not say since and until, in Unix seconds") from error

    def jobs(self) -> Iterator[Slice]:
        """Yield the answers of sacct, the oldest first."""
        for start, end in slices(self.since, self.until):
            yield start, end, self._lines(f"jobs-{start}.txt")

    def events(self) -> Iterable[str]:
        """Return the events of nodes."""
        return self._lines("events.txt")

    def config(self) -> Iterable[str]:
        """Return Slurm's settings."""
        return self._lines("config.txt")

    def nodes(self) -> Iterable[str]:
        """Return each node with its CPUs and its generic resources."""
        return self._lines("nodes.txt")

    def log(self, usual: str) -> Iterator[str]:
        """Yield the lines of slurmctld's log that were kept."""
        return self._lines("log.txt")

    def _lines(self, name: str) -> Iterator[str]:
        return read_lines(self._folder / name)


def read_lines(file: Path) -> Iterator[str]:
    """Yield the lines of a file. Raises AskError if it cannot be read."""
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            yield from lines
    except OSError as error:
        raise AskError(f"{file}: {error.strerror}") from error


def _utc(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
