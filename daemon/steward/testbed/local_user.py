"""Running a command as an ordinary user of this machine."""

import os
import pwd
from collections.abc import Sequence

from steward.testbed.bed import BedError


def as_user(user: str, argv: Sequence[str]) -> list[str]:
    """argv that runs `argv` as `user`; empty or ourselves: unchanged. Only root may become somebody else."""
    if user == "":
        return list(argv)
    try:
        entry = pwd.getpwnam(user)
    except KeyError as error:
        raise BedError(f"no user {user} on this machine; choose one of `getent passwd`") from error
    if entry.pw_uid == os.geteuid():
        return list(argv)
    if os.geteuid() != 0:
        raise BedError(f"only root can run a command as {user}; bring the bed up as root")
    who = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
    return ["setpriv", *who, "env", f"USER={user}", "HOME=/", *argv]
