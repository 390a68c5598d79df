"""Probes as data, and their raw results. Adapters look, checks judge."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process with a compute context on a GPU; `mib` is None if NVML does not report it."""

    pid: int
    mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """An NVIDIA GPU, as NVML reports it in one look. None: this GPU or driver does not report the value.

    If the GPU does not answer, `error` and `code` are NVML's message and number, and the rest is absent. "Volatile"
    counts run since the driver was loaded, the others for life.
    """

    index: int
    code: int = 0
    uuid: str = ""
    name: str = ""
    error: str = ""
    serial: str = ""
    bus: str = ""
    vbios: str = ""
    recovery_action: int | None = None
    """The remedy that the driver recommends: NVML's field 230."""
    ecc_corrected_dram: int | None = None
    ecc_corrected_sram: int | None = None
    ecc_uncorrected: int | None = None
    """A volatile count, like the two above."""
    sram_uncorrected: int | None = None
    """A count for life."""
    sram_limit_exceeded: bool | None = None
    remapped_corrected: int | None = None
    remapped_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    retired_pages: int | None = None
    retire_pending: bool | None = None
    temperature_c: int | None = None
    slowdown_c: int | None = None
    """The temperature at which the GPU begins to throttle."""
    margin_c: int | None = None
    """The degrees left until then, on newer GPUs."""
    sm_mhz: int | None = None
    """The clock of its processors now."""
    clock_reasons: int | None = None
    """NVML's bits for the reasons why the clocks are not higher."""
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_replays: int | None = None
    nvlinks: tuple[bool, ...] = ()
    """For each link of the GPU, whether the link is active."""
    nvlink_errors: int | None = None
    """Replays, recoveries and CRC errors of all links together."""
    fabric_state: int | None = None
    fabric_status: int | None = None
    fabric_health: int | None = None
    persistence: bool | None = None
    inforom_error: str | None = None
    """Empty if NVML found the InfoROM valid."""
    memory_used_mib: int | None = None
    """The used memory without the driver's own."""
    processes: tuple[GpuProcess, ...] | None = None
    busy_percent: int | None = None
    """The share of the last moment (up to 1 s) in which a kernel ran, whatever it did."""
    memory_busy_percent: int | None = None
    """The share in which memory was read or written."""
    energy_mj: int | None = None
    """The energy since the driver was loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFiles:
    """A read of small text files; the answer maps each path to its text, None if absent.

    The slurm.conf at `slurm_conf` (none: empty) is read whole, with the files that it includes.
    """

    paths: tuple[str, ...] = ()
    slurm_conf: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTree:
    """A read of every small text file that matches one of the glob patterns, `max_files` at most (sorted by path).

    Paths below /sys and /proc are read below `agent.sys_dir` and `agent.proc_dir`, here and in ReadFiles; the answer
    has the requested names. With `needs`, a match of a pattern's first wildcard is skipped if it lacks that file: a
    node may have hundreds of virtual interfaces, and only those with a `device` are read.
    """

    patterns: tuple[str, ...]
    max_files: int = 1024
    needs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListProcesses:
    """A list of every process of the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindProcess:
    """A search for a process of root's on the node whose name begins with `prefix`: users choose their own names.

    Skipped on a node where no file matches one of the patterns `where`.
    """

    prefix: str
    where: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchMounts:
    """A touch of each file system, in a child that may be killed, or left behind when it hangs in the kernel.

    Touches the mount points `paths` (a path that is no mount point is reported) and every mount of the file system
    `types`, `max_mounts` at most, but no mount point whose last child still hangs. /proc/mounts is read as in ReadTree.
    """

    paths: tuple[str, ...]
    timeout_s: float = 5.0
    types: tuple[str, ...] = ()
    max_mounts: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsage:
    """A statvfs of each mount point, in a thread that may be abandoned: a hung mount must not hang the agent."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgram:
    """A run of one program (argv, never a shell) with a time limit; its output is cut at `max_bytes`.

    `env` is added to the agent's own environment. A missing program is a failed look, unless it `may_be_absent`: then
    the answer has no status. `stamp_env` names a variable that holds the time (UTC, 20261121T174000Z).
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 10.0
    max_bytes: int = 4096
    may_be_absent: bool = False
    stamp_env: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOnEach:
    """A run of a program for each path (sorted, `max_paths` at most) that matches a glob pattern, as last argument.

    The answer maps each path to the output; its status is 0, or None if the program is not installed.
    """

    patterns: tuple[str, ...]
    argv: tuple[str, ...]
    timeout_s: float = 10.0
    max_paths: int = 16
    max_bytes: int = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelClock:
    """The question whether the kernel's clock is synchronised (adjtimex)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskMunge:
    """A credential that munged makes and decodes again; the status is 0 or 1, None without libmunge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolUsage:
    """A statvfs of slurmd's spool folder, as named by the slurm.conf at `slurm_conf` (or slurmd's own copy)."""

    node: str
    slurm_conf: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryGpus:
    """NVML's values of each GPU; no GPUs without an NVIDIA driver.

    `use_only`: only what it does and for which processes, which takes a tenth of the time.
    """

    timeout_s: float = 10.0
    use_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadClock:
    """The difference of the head's clock and this node's, measured on the connection."""


Probe = (
    ReadFiles
    | ReadTree
    | ListProcesses
    | FindProcess
    | TouchMounts
    | DiskUsage
    | RunProgram
    | RunOnEach
    | QueryGpus
    | HeadClock
    | KernelClock
    | AskMunge
    | SpoolUsage
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """One file system: sizes in bytes, `read_only` from its mount flags. `is_open`: all users may write at the path."""

    total: int
    free: int
    inodes: int
    inodes_free: int
    read_only: bool
    device: int = 0
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process: `state` is the kernel's letter (`D`, `Z`, ...), `uid` the effective one, `name` hostile text.

    `started` is Unix seconds. `ticks` is its CPU time in the kernel's clock ticks, which does not grow in a stuck
    process.
    """

    pid: int
    parent: int
    uid: int
    state: str
    name: str
    started: float
    ticks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """The raw result of a probe. Exactly one kind of field is filled; `error` means that the look itself failed."""

    error: str = ""
    files: dict[str, str | None] = field(default_factory=dict)
    disks: dict[str, Disk] = field(default_factory=dict)
    returncode: int | None = None
    output: str = ""
    """The program's stdout, or its stderr if stdout is empty."""
    truncated: bool = False
    """Whether more output came than requested, and was dropped."""
    gpus: tuple[Gpu, ...] | None = None
    hung: str = ""
    """The call that NVML did not answer in time, so that there are no `gpus`; empty if it answered."""
    processes: tuple[Process, ...] = ()
    mounts: dict[str, str] = field(default_factory=dict)
    """For each mount point empty if it answered, else `hung`, `not mounted` or an error."""
    skew_s: float | None = None
    synchronised: bool | None = None
