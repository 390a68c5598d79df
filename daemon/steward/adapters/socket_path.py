"""Where a unix socket is to be: what a dead process left there is removed, what lives is left alone."""

import socket
import stat
from pathlib import Path

_ANSWER_S = 0.5


def make_free(path: Path, *, rival: str) -> None:
    """Nothing is at `path` afterwards. Raises FileExistsError where a process answers (`rival` says who that may be,
    and what to do), and for what is no socket."""
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise FileExistsError(f"{path} exists and is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_ANSWER_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
    raise FileExistsError(f"another {rival}")
