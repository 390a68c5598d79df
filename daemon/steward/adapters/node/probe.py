"""The probes of this machine, one for each kind. Calls block: use them in a thread that may be left behind."""

import ctypes
import glob
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from steward.adapters.munge import Munge
from steward.adapters.node.mount_looks import NOT_MOUNTED, MountLooks
from steward.adapters.node.nvml import Nvml
from steward.adapters.node.slurm_conf import conf_text, spool_dir
from steward.adapters.node.small_files import is_any_there, text_of, texts_of
from steward.adapters.proc import MAX_STAT, PassedOver, ProcessFiles
from steward.adapters.process import Completed, Failed, run
from steward.checks.mounts import mounted
from steward.model.probe import (
    AskMunge,
    Disk,
    DiskUsage,
    FindProcess,
    HeadClock,
    KernelClock,
    ListProcesses,
    Probe,
    Process,
    QueryGpus,
    Raw,
    ReadFiles,
    ReadTree,
    RunOnEach,
    RunProgram,
    SpoolUsage,
    TouchMounts,
)
from steward.model.text import cause_and_file, printable
from steward.ports import MungePort, Permanent, PortError

_DRIVER_GPUS = "/proc/driver/nvidia/gpus"
"""The folder in which the NVIDIA driver lists its devices."""
_TIMEX_SIZE = 512
"""More bytes than any struct timex has; with all of them zero, adjtimex only returns the state."""
_UNSYNCHRONISED = 5  # TIME_ERROR


class LocalProbes:
    """The probes of this machine. Threads may share one.

    `skew_s` returns the head's clock minus ours, None while there is no head. `proc` and `sys` are the mount points of
    those file systems. `munge` connects to munged, and raises Permanent without libmunge.
    """

    def __init__(
        self,
        *,
        skew_s: Callable[[], float | None],
        proc: Path = Path("/proc"),
        sys: Path = Path("/sys"),
        munge: Callable[[], MungePort] = Munge,
        nvml: Nvml | None = None,
    ) -> None:
        self._skew_s = skew_s
        self._roots = {"/proc/": f"{proc}/", "/sys/": f"{sys}/"}
        self._proc = proc
        self._munge = munge
        self._nvml = nvml or Nvml()
        self._processes = Processes(proc)
        self._mount_looks = MountLooks()
        self._shared = SharedLooks(self._look_safely)

    def look(self, probe: Probe) -> Raw:
        """Return the result of the probe; a failed one is Raw(error=...). Equal probes at one moment share a look."""
        return self._shared(probe)

    def _look_safely(self, probe: Probe) -> Raw:
        try:
            return self._look(probe)
        except (OSError, ValueError, PortError) as error:
            return Raw(error=cause_and_file(error))

    def _look(self, probe: Probe) -> Raw:
        match probe:
            case ReadFiles():
                files = {path: text_of(self._real_path(path)) for path in probe.paths}
                if probe.slurm_conf:
                    files[probe.slurm_conf] = conf_text(Path(probe.slurm_conf))
                return Raw(files=files)
            case ReadTree():
                return Raw(files=self._tree(probe))
            case DiskUsage():
                return Raw(disks={path: _disk(path) for path in probe.paths if os.path.exists(path)})
            case RunProgram():
                return run_program(probe)
            case RunOnEach():
                return run_on_each(probe)
            case HeadClock():
                return Raw(skew_s=self._skew_s())
            case QueryGpus():
                return self._nvml.look(self._driver_gpus(), probe.timeout_s, use_only=probe.use_only)
            case _:
                return self._ask(probe)

    def _ask(self, probe: ListProcesses | FindProcess | TouchMounts | KernelClock | AskMunge | SpoolUsage) -> Raw:
        """Return the result of a probe that reads neither plain files nor a program's output."""
        match probe:
            case ListProcesses():
                return Raw(processes=self._processes.every())
            case FindProcess():
                return Raw(processes=self._find(probe))
            case TouchMounts():
                return Raw(mounts=self._touch(probe))
            case KernelClock():
                return Raw(synchronised=is_synchronised())
            case AskMunge():
                return self._ask_munge()
            case SpoolUsage():
                path = spool_dir(probe.slurm_conf, probe.node)
                return Raw(disks={path: _disk(path)} if os.path.isdir(path) else {})

    def _real_path(self, path: str) -> str:
        """Return the real path on this node of a path below /proc or /sys."""
        root = path[: path.find("/", 1) + 1]
        return self._roots[root] + path[len(root) :] if root in self._roots else path

    def _tree(self, probe: ReadTree) -> dict[str, str | None]:
        asked = {self._real_path(pattern): pattern for pattern in probe.patterns}
        found = texts_of(asked, probe.max_files, probe.needs)
        return {self._asked_path(path, asked[pattern]): text for path, pattern, text in found}

    def _asked_path(self, path: str, pattern: str) -> str:
        """Return the path of a found file as below the pattern's own /proc or /sys."""
        root = pattern[: pattern.find("/", 1) + 1]
        return root + path[len(self._roots[root]) :] if root in self._roots else path

    def _find(self, probe: FindProcess) -> tuple[Process, ...]:
        if not is_any_there(map(self._real_path, probe.where)):
            return ()
        found = self._processes.find(probe.prefix)
        return () if found is None else (found,)

    def _touch(self, probe: TouchMounts) -> dict[str, str]:
        table = mounts(self._proc)
        there = {mount.point for mount in table}
        listed = [path for path in probe.paths if path in there]
        wanted = tuple(dict.fromkeys((*listed, *of_types(table, probe.types))))[: probe.max_mounts]
        absent = {path: NOT_MOUNTED for path in probe.paths if path not in there}
        return absent | self._mount_looks.look(wanted, probe.timeout_s)

    def _ask_munge(self) -> Raw:
        try:
            munge = self._munge()
        except Permanent as error:
            return Raw(output=str(error))
        try:
            munge.decode(munge.encode(b""))
        except PortError as error:
            return Raw(returncode=1, output=str(error))
        return Raw(returncode=0)

    def _driver_gpus(self) -> list[str]:
        driver = Path(self._real_path(_DRIVER_GPUS))
        return sorted(path.name for path in driver.iterdir()) if driver.is_dir() else []


def _disk(path: str) -> Disk:
    seen, place = os.statvfs(path), os.stat(path)
    used = seen.f_blocks - seen.f_bfree
    return Disk(
        total=(used + seen.f_bavail) * seen.f_frsize,  # as df counts: without the blocks reserved for root
        free=seen.f_bavail * seen.f_frsize,
        inodes=seen.f_files,
        inodes_free=seen.f_favail,
        read_only=bool(seen.f_flag & os.ST_RDONLY),
        device=place.st_dev,
        is_open=bool(place.st_mode & stat.S_IWOTH),
    )


def is_synchronised() -> bool:
    """Return whether the kernel calls the clock synchronised; if not, it may be seconds off. Raises OSError."""
    state = int(ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_SIZE)))
    if state < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"adjtimex: {os.strerror(number)}")
    return state != _UNSYNCHRONISED


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A mounted file system."""

    point: str
    type: str


def mounts(proc: Path) -> tuple[Mount, ...]:
    """Return all mounts in order, from the kernel's table: a hung file system is not touched. Raises OSError."""
    table = (proc / "mounts").read_text(encoding="utf-8", errors="surrogateescape")
    return tuple(Mount(point=point, type=type) for point, type in mounted(table))


def of_types(table: Iterable[Mount], types: Iterable[str]) -> tuple[str, ...]:
    """Return the mount points of these file system types, sorted, each once."""
    wanted = frozenset(types)
    return tuple(sorted({mount.point for mount in table if mount.type in wanted}))


def run_program(probe: RunProgram) -> Raw:
    """Run the program as RunProgram describes. Never raises."""
    if probe.may_be_absent and shutil.which(probe.argv[0]) is None:
        return Raw(output=f"{probe.argv[0]} is not installed")
    try:
        env = dict(probe.env)
        if probe.stamp_env:
            env[probe.stamp_env] = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        done = run(probe.argv, timeout_s=probe.timeout_s, env=env, max_bytes=probe.max_bytes, check=False)
    except Failed as error:
        return Raw(error=cause_and_file(error))
    return Raw(returncode=done.returncode, output=_output(done), truncated=done.truncated)


def run_on_each(probe: RunOnEach) -> Raw:
    """Run the program on each path as RunOnEach describes. Raises Failed."""
    # The exit status is not used: such programs have many that mean "works, but ...".
    if shutil.which(probe.argv[0]) is None:
        return Raw(output=f"{probe.argv[0]} is not installed")
    paths = sorted({path for pattern in probe.patterns for path in glob.glob(pattern)})[: probe.max_paths]
    outputs: dict[str, str | None] = {}
    for path in paths:
        argv = (*probe.argv, path)
        done = run(argv, timeout_s=probe.timeout_s, max_bytes=probe.max_bytes, check=False)
        outputs[path] = _output(done)
    return Raw(returncode=0, files=outputs)


def _output(done: Completed) -> str:
    return done.text if done.text.strip() else done.error_text


# Every process of the node, as /proc lists them.

_TICKS = os.sysconf("SC_CLK_TCK")
_MAX_NAME = 64


class Processes:
    """The processes of the node, as /proc lists them. `root` is the user whose processes are services."""

    def __init__(self, proc: Path, *, root: int = 0) -> None:
        self._proc, self._root = str(proc), root
        self._files = ProcessFiles(str(proc))
        self._found: dict[str, str] = {}
        # taken once: a step of the clock must not change the start times by which processes are told apart
        self._booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def every(self) -> tuple[Process, ...]:
        """Return all processes in /proc's order, but those that end meanwhile or are passed over. Raises OSError."""
        seen = (self._look(entry) for entry in os.listdir(self._proc) if entry.isdigit())
        return tuple(process for process in seen if process is not None)

    def find(self, prefix: str) -> Process | None:
        """Return a process of root's whose name begins with `prefix`; None if there is none. Raises OSError."""
        # The process that was found last is tried first: mostly it still runs.
        known = self._found.get(prefix)
        if known is not None and (process := self._look(known)) is not None and self._is_service(process, prefix):
            return process
        found = next((process for process in self.every() if self._is_service(process, prefix)), None)
        if found is not None:
            self._found[prefix] = str(found.pid)
        return found

    def _is_service(self, process: Process, prefix: str) -> bool:
        return process.uid == self._root and process.name.startswith(prefix)

    def _look(self, pid: str) -> Process | None:
        try:
            uid = os.stat(f"{self._proc}/{pid}").st_uid
            text = self._files.read(int(pid), "stat", MAX_STAT)
        except (FileNotFoundError, ProcessLookupError, PermissionError, PassedOver):
            return None
        return self._parse(int(pid), uid, text)

    def _parse(self, pid: int, uid: int, text: bytes) -> Process | None:
        """Return the process in the text of its `stat`; None if that is malformed."""
        # The name is in parentheses and may hold anything, even a `)`; the text after the last one is plain.
        head, _, rest = text.rpartition(b")")
        fields = rest.split(None, 20)
        if len(fields) < 20:
            return None
        return Process(
            pid=pid,
            parent=int(fields[1]),
            uid=uid,
            state=fields[0].decode("ascii", "replace"),
            name=_name(head.partition(b"(")[2].decode("utf-8", "replace")),
            started=self._booted + int(fields[19]) / _TICKS,
            ticks=int(fields[11]) + int(fields[12]),
        )


def _name(text: str) -> str:
    """Return the printable name of a process."""
    # Most of thousands of names are plain; `printable` is slow, as it looks at every character.
    return text[:_MAX_NAME] if text.isascii() and text.isprintable() else printable(text, _MAX_NAME)


# Checks with the same probe at the same moment share one look.

KEEP_S = 0.5
"""How long a look is shared: shorter than every `confirm_s` (a test compares), since to confirm takes a new look."""


class _Look:
    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.raw = Raw()
        self.at = float("-inf")
        """When the look ended, on the monotonic clock."""


class SharedLooks:
    """A cache of looks: a result younger than KEEP_S is returned again.

    While one thread looks, others with the same probe wait for its result, even if it hangs: they would hang, too.
    """

    def __init__(self, look: Callable[[Probe], Raw], now: Callable[[], float] = time.monotonic) -> None:
        self._look = look
        self._now = now
        self._looks: dict[Probe, _Look] = {}
        self._table = threading.Lock()

    def __call__(self, probe: Probe) -> Raw:
        one = self._entry(probe)
        with one.turn:
            if self._now() - one.at > KEEP_S:
                one.raw = self._look(probe)
                one.at = self._now()
            return one.raw

    def _entry(self, probe: Probe) -> _Look:
        """Return the entry of a probe, and drop the entries of old looks that are over."""
        with self._table:
            old = self._now() - KEEP_S
            for known in [key for key, one in self._looks.items() if one.at < old and not one.turn.locked()]:
                if known != probe:
                    del self._looks[known]
            return self._looks.setdefault(probe, _Look())
