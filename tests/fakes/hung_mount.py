"""A real mount that hangs: a FUSE file system whose server takes questions in and never answers. Root only.

Whoever asks it hangs in the kernel, and cannot even be killed once the server has taken his question: the state D that
a dead NFS server or a wedged Lustre client brings. Also a program, for test beds: `python hung_mount.py DIR SUBTYPE`
mounts it and lets go at SIGTERM, at SIGINT or when its standard input ends.
"""

import contextlib
import ctypes
import os
import signal
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

_MS_NOSUID_NODEV = 2 | 4
_MNT_FORCE, _MNT_DETACH = 1, 2
_HEADER = struct.Struct("<IIQQIIII")
_ANSWER = struct.Struct("<IiQ")
_GREETING = struct.Struct("<IIIIHHIIHH32x")
_VERSION = (7, 31)
_READ = 1 << 20


def can_mount() -> bool:
    """Whether this machine and user can have one."""
    return os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


class HungMount:
    """Mounted on `path` (an empty folder) for as long as the context lasts. At its end all who hang there are let go.

    Its type in /proc/mounts is `fuse.` and the subtype.
    """

    def __init__(self, path: Path, subtype: str = "hung") -> None:
        self.path = path
        self._subtype = subtype
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self) -> "HungMount":
        self._fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._fuse},rootmode=40000,user_id=0,group_id=0,subtype={self._subtype}"
        self._call("mount", b"hung", os.fsencode(self.path), b"fuse", _MS_NOSUID_NODEV, options.encode())
        self._server = threading.Thread(target=self._serve, name="hung mount", daemon=True)
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Force ends every question that waits; it may find the mount busy, which detaching does not mind."""
        with contextlib.suppress(OSError):
            self._call("umount2", os.fsencode(self.path), _MNT_FORCE)
        with contextlib.suppress(OSError):
            self._call("umount2", os.fsencode(self.path), _MNT_DETACH)
        self._server.join(5)
        os.close(self._fuse)

    def _serve(self) -> None:
        """Greet the kernel, as its protocol wants; from then on only listen."""
        with contextlib.suppress(OSError):  # ENODEV: the mount is gone
            _, _, unique, *_ = _HEADER.unpack_from(os.read(self._fuse, _READ))
            body = _GREETING.pack(*_VERSION, 0, 0, 1, 1, 4096, 1, 1, 0)
            os.write(self._fuse, _ANSWER.pack(_ANSWER.size + len(body), 0, unique) + body)
            while True:
                os.read(self._fuse, _READ)

    def _call(self, name: str, *arguments: bytes | int) -> None:
        if getattr(self._libc, name)(*arguments) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"{name} {self.path}: {os.strerror(number)}")


@contextlib.contextmanager
def hung_mount(path: Path, subtype: str = "hung") -> Iterator[Path]:
    """The folder `path`, made and hung; gone afterwards. Raises OSError where that cannot be done."""
    path.mkdir()
    try:
        with HungMount(path, subtype):
            yield path
    finally:
        path.rmdir()


def _until_input_ends(told: threading.Event) -> None:
    sys.stdin.read()
    told.set()


def main() -> int:
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    threading.Thread(target=_until_input_ends, args=(told,), daemon=True).start()
    with hung_mount(Path(sys.argv[1]), *sys.argv[2:3]) as path:
        print(f"hung: {path}", flush=True)
        told.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
