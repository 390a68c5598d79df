"""Set the user of stewardd's unit on this machine, which must be SlurmUser: agents refuse any other head."""

import grp
import os
import pwd
import shutil
from pathlib import Path

from steward.adapters.files import write_whole
from steward.adapters.process import run
from steward.ports import PortError

DROP_IN = Path("/etc/systemd/system/stewardd.service.d/user.conf")
USUAL = "slurm"
"""The user in the packaged unit."""
_ASK_S = 10.0


def let_run_as(user: str, drop_in: Path = DROP_IN) -> str:
    """Make the unit run as `user`; return the drop-in file that says so; empty if none is needed.

    Raises OSError, and KeyError for a user that this machine does not know.
    """
    if user in ("", USUAL):
        return ""
    group = grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name
    drop_in.parent.mkdir(parents=True, exist_ok=True)
    write_whole(drop_in, f"# SlurmUser; written by `steward init`.\n[Service]\nUser={user}\nGroup={group}\n")
    if os.path.isdir("/run/systemd/system"):
        _ask("daemon-reload")
    return str(drop_in)


def runs_as() -> str:
    """Return the user of stewardd's unit; empty without such a unit or without systemd."""
    words = _ask("show", "--property=LoadState,User", "stewardd.service").split()
    shown = dict(word.partition("=")[::2] for word in words)
    return (shown.get("User") or "root") if shown.get("LoadState") == "loaded" else ""


def _ask(*words: str) -> str:
    if shutil.which("systemctl") is None:
        return ""
    try:
        done = run(["systemctl", *words], timeout_s=_ASK_S, check=False)
    except PortError:
        return ""
    return "" if done.returncode else done.text
