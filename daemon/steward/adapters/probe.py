"""The agent's senses: each kind of probe, done. Calls block: use them in a thread that may be left behind."""

import errno
import glob
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steward.adapters.process import Completed, Failed, run
from steward.model.probe import (
    Disk,
    DiskUsage,
    Gpu,
    HeadClock,
    ListProcesses,
    Probe,
    QueryGpus,
    Raw,
    ReadFiles,
    ReadTree,
    RunProgram,
    TouchMounts,
)
from steward.ports import PortError

_MAX_FILE = 65536
_NOTHING_TO_SAY = (errno.EINVAL, errno.EIO, errno.ENODEV, errno.EOPNOTSUPP)
"""What sysfs answers for a property that this device does not have, or a link that is down."""
_MAX_NVML = 65536
_DRIVER_GPUS = "/proc/driver/nvidia/gpus"
"""Where the NVIDIA driver lists its devices."""


class LocalProbes:
    """`skew_s` tells the head's clock minus ours, or None while there is no head. `proc` and `sys` are where those file
    systems are mounted."""

    def __init__(
        self, *, skew_s: Callable[[], float | None], proc: Path = Path("/proc"), sys: Path = Path("/sys")
    ) -> None:
        self._skew_s = skew_s
        self._roots = {"/proc/": f"{proc}/", "/sys/": f"{sys}/"}

    def look(self, probe: Probe) -> Raw:
        """Never raises: a failed look is Raw(error=...)."""
        try:
            return self._look(probe)
        except (OSError, ValueError, PortError) as error:
            return Raw(error=str(error))

    def _look(self, probe: Probe) -> Raw:
        match probe:
            case ReadFiles():
                return Raw(files={path: _text(self._real(path)) for path in probe.paths})
            case ReadTree():
                return Raw(files=self._tree(probe))
            case ListProcesses() | TouchMounts():
                raise NotImplementedError(type(probe).__name__)
            case DiskUsage():
                return Raw(disks={path: _disk(path) for path in probe.paths if os.path.exists(path)})
            case RunProgram():
                return _program(probe)
            case HeadClock():
                return Raw(skew_s=self._skew_s())
            case QueryGpus():
                return Raw(gpus=self._gpus(probe))

    def _real(self, path: str) -> str:
        """Where a path below /proc or /sys is on this node."""
        root = path[: path.find("/", 1) + 1]
        return self._roots[root] + path[len(root) :] if root in self._roots else path

    def _tree(self, probe: ReadTree) -> dict[str, str | None]:
        found = sorted((path, pattern) for pattern in probe.patterns for path in glob.glob(self._real(pattern)))
        files = [(path, pattern) for path, pattern in found if os.path.isfile(path)]
        return {self._asked(path, pattern): _text(path) for path, pattern in files[: probe.max_files]}

    def _asked(self, path: str, pattern: str) -> str:
        """The name of a file that was found, as the pattern would have named it."""
        root = pattern[: pattern.find("/", 1) + 1]
        return root + path[len(self._roots[root]) :] if root in self._roots else path

    def _gpus(self, probe: QueryGpus) -> tuple[Gpu, ...]:
        """NVML runs in a child of its own: a dead GPU can hold a call for ever, and the agent stays small."""
        driver = Path(self._real(_DRIVER_GPUS))
        listed = sorted(path.name for path in driver.iterdir()) if driver.is_dir() else []
        if not listed:
            return ()
        argv = (sys.executable, "-P", "-m", "steward.adapters.nvml_child")
        answer = json.loads(run(argv, timeout_s=probe.timeout_s, max_bytes=_MAX_NVML).stdout)
        return with_missing(tuple(_gpu(record) for record in answer), listed)


def with_missing(answered: tuple[Gpu, ...], listed: list[str]) -> tuple[Gpu, ...]:
    """Add a GPU with an error for each device that the driver lists and NVML does not name."""
    missing = range(len(answered), len(listed))
    return (*answered, *(Gpu(index=n, error="the driver lists it, NVML does not") for n in missing))


def _gpu(record: dict[str, Any]) -> Gpu:
    return Gpu(
        index=int(record["index"]),
        code=int(record["code"]),
        uuid=str(record["uuid"]),
        name=str(record["name"]),
        error=str(record["error"]),
    )


def _text(path: str) -> str | None:
    """None where it is absent, or a file of sysfs that has nothing to say."""
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_FILE).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _NOTHING_TO_SAY:
            return None
        raise


def _disk(path: str) -> Disk:
    seen = os.statvfs(path)
    used = seen.f_blocks - seen.f_bfree
    return Disk(
        total=(used + seen.f_bavail) * seen.f_frsize,  # as df counts: without what is kept for root
        free=seen.f_bavail * seen.f_frsize,
        inodes=seen.f_files,
        inodes_free=seen.f_favail,
        read_only=bool(seen.f_flag & os.ST_RDONLY),
    )


def _program(probe: RunProgram) -> Raw:
    try:
        env = dict(probe.env)
        done = run(probe.argv, timeout_s=probe.timeout_s, env=env, max_bytes=probe.max_bytes, check=False)
    except Failed as error:
        return Raw(error=str(error))
    return Raw(returncode=done.returncode, output=_output(done))


def _output(done: Completed) -> str:
    return done.text if done.text.strip() else done.error_text
