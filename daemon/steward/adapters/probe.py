"""The agent's senses: each kind of probe, done. Calls block: use them in a thread that may be left behind."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steward.adapters.process import Completed, Failed, run
from steward.model.probe import Disk, DiskUsage, Gpu, HeadClock, Probe, QueryGpus, Raw, ReadFiles, RunProgram
from steward.ports import PortError

_MAX_FILE = 65536
_MAX_NVML = 65536
_DRIVER_GPUS = Path("/proc/driver/nvidia/gpus")


class LocalProbes:
    """`skew_s` tells the head's clock minus ours, or None while there is no head. `driver_gpus` is where the NVIDIA
    driver lists its devices."""

    def __init__(self, *, skew_s: Callable[[], float | None], driver_gpus: Path = _DRIVER_GPUS) -> None:
        self._skew_s = skew_s
        self._driver_gpus = driver_gpus

    def look(self, probe: Probe) -> Raw:
        """Never raises: a failed look is Raw(error=...)."""
        try:
            return self._look(probe)
        except (OSError, ValueError, PortError) as error:
            return Raw(error=str(error))

    def _look(self, probe: Probe) -> Raw:
        match probe:
            case ReadFiles():
                return Raw(files={path: _text(path) for path in probe.paths})
            case DiskUsage():
                return Raw(disks={path: _disk(path) for path in probe.paths if os.path.exists(path)})
            case RunProgram():
                return _program(probe)
            case HeadClock():
                return Raw(skew_s=self._skew_s())
            case QueryGpus():
                return Raw(gpus=self._gpus(probe))

    def _gpus(self, probe: QueryGpus) -> tuple[Gpu, ...]:
        """NVML runs in a child of its own: a dead GPU can hold a call for ever, and the agent stays small."""
        listed = sorted(path.name for path in self._driver_gpus.iterdir()) if self._driver_gpus.is_dir() else []
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
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_FILE).decode("utf-8", "replace")
    except FileNotFoundError:
        return None


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
