"""The head's words on the site, in files beside the socket, where the shim of this machine reads them: the defaults for
jobs without the option, and the warning for whoever submits a job with it."""

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path

from steward.model.resume_mode import SiteDefault

log = logging.getLogger(__name__)

DEFAULTS = "defaults"
WARNING = "warning"
_PLAIN = re.compile(r"[!-~]*\Z")


def write_defaults(folder: Path, defaults: Iterable[SiteDefault]) -> None:
    """The file is either the old one or the new one; without defaults there is none. What cannot be written is told in
    the log: jobs then start without the site's default."""
    text = "".join(f"{line}\n" for line in map(_line, defaults) if line)
    _keep(folder / DEFAULTS, text)


def write_warning(folder: Path, warning: str) -> None:
    """Write the one sentence that sbatch shows; an empty one clears it. A failure to write goes to the log."""
    _keep(folder / WARNING, f"{warning}\n" if warning else "")


def _keep(file: Path, text: str) -> None:
    try:
        if text:
            _replace(file, text)
        else:
            file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("file for the shim not written file=%s why=%r", file, str(error))


def _line(one: SiteDefault) -> str:
    """Empty for one that no job can fit: Slurm's names have no blanks."""
    words = {"partition": one.partition, "account": one.account, "qos": one.qos, "mode": one.mode.text}
    if not all(_PLAIN.match(word) for word in words.values()):
        log.warning("site's default left out why='a name with blanks or other characters than ASCII' is=%r", words)
        return ""
    return " ".join(f"{key}={word}" for key, word in words.items() if word)


def _replace(file: Path, text: str) -> None:
    new = file.with_name(f".{file.name}.{os.getpid()}")
    file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    new.write_text(text, encoding="ascii", errors="replace")
    new.chmod(0o644)
    new.replace(file)
