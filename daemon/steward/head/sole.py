"""One head at a time on one state_dir. A second one, typed by hand, would migrate the store of the one that runs, and
both would do what either plans."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steward.ports import Permanent, Retryable

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What a file system without locks says: nobody is kept out then."""


@contextmanager
def sole(directory: Path) -> Iterator[None]:
    """Holds the head's state_dir, made when absent. A dead holder's lock is free. Raises Retryable when another head
    has it, Permanent when it cannot be made."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / "stewardd.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Permanent(f"head.state_dir {directory}: {error}; make it, owned by SlurmUser") from error
    try:
        _hold(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _hold(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "?"
        text = f"process {holder} is a head that keeps its state there; end it, or give this one a place of its own"
        raise Retryable(f"head.state_dir {directory}: {text}") from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise Permanent(f"head.state_dir {directory}: {error}") from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
