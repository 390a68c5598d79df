"""The one file of Slurm's configuration that Steward writes: partitions of API groups, included by slurm.conf.

With a wrong word in it, or none of the file at all, no Slurm command works any more. So it is replaced as a whole, what
Slurm last read well lies beside it, and slurm.conf itself is only ever read.
"""

import os
import re
from pathlib import Path

from steward.adapters.whole_file import write_whole
from steward.ports import Permanent, Retryable

_CONF = Path("/etc/slurm/slurm.conf")
_INCLUDE = re.compile(r"^\s*include\s+(?P<file>\S+)", re.IGNORECASE | re.MULTILINE)
_MODE = 0o644


class IncludeFile:
    """`conf` is slurm.conf (empty: where Slurm looks by itself)."""

    def __init__(self, path: Path, conf: str = "") -> None:
        self._path, self._conf = path, Path(conf) if conf else _CONF

    @property
    def line(self) -> str:
        """The line that slurm.conf must have."""
        beside = self._path.parent == self._conf.parent
        return f"include {self._path.name if beside else self._path}"

    def is_included(self) -> bool:
        """Raises Retryable when slurm.conf cannot be read."""
        try:
            text = self._conf.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise Retryable(f"cannot read {self._conf}: {error}") from error
        return any(self._conf.parent / name == self._path for name in _INCLUDE.findall(text))

    def why_not_writable(self) -> str:
        """Empty when it is there and can be replaced."""
        place = self._path.resolve()
        if not place.is_file():
            return f"{self._path} does not exist: make it, owned by SlurmUser, before slurm.conf includes it"
        if not os.access(place.parent, os.W_OK):
            unit = f"`systemctl edit stewardd`: [Service] ReadWritePaths={place.parent}"
            return f"{place.parent} is not writable for SlurmUser, or not for stewardd's unit ({unit})"
        return ""

    def text(self) -> str:
        """The text that Slurm reads with its configuration; empty where there is no such file."""
        return self._read(self._path)

    def good(self) -> str:
        """The text that Slurm last read without an error; the present one where that is not known."""
        return self._read(self._beside) or self.text()

    def replace(self, text: str) -> None:
        """Raises Permanent when slurm.conf does not include it, Retryable when it cannot be written."""
        if not self.is_included():
            raise Permanent(f"{self._conf} does not include {self._path}: add the line `{self.line}` to it")
        self._write(self._path.resolve(), text)

    def is_good(self) -> None:
        """Slurm read it well."""
        self._write(self._beside, self.text())

    @property
    def _beside(self) -> Path:
        place = self._path.resolve()
        return place.with_name(f"{place.name}.good")

    @staticmethod
    def _read(path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise Retryable(f"cannot read {path}: {error}") from error

    @staticmethod
    def _write(path: Path, text: str) -> None:
        try:
            write_whole(path, text, mode=_MODE, sync=True)
        except OSError as error:
            remedy = "make its directory writable for SlurmUser, and for stewardd's unit (ReadWritePaths=)"
            raise Retryable(f"cannot write {path}: {error}; {remedy}") from error
