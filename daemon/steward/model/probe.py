"""Probes as data: what to look at, and what comes back, such as an NVIDIA GPU as NVML tells of it in one look. Adapters
look, checks judge."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that has a compute context on a GPU; `mib` is None where NVML cannot tell."""

    pid: int
    mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """`error` is NVML's message where the GPU does not answer, `code` NVML's number for it; the rest is absent then.

    None: this GPU, or this driver, cannot tell. "Volatile" counts run since the driver was loaded, the others for life.
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
    """The remedy that the driver asks for: NVML's field 230."""
    ecc_corrected_dram: int | None = None
    ecc_corrected_sram: int | None = None
    ecc_uncorrected: int | None = None
    """These three volatile."""
    sram_uncorrected: int | None = None
    """For life."""
    sram_limit_exceeded: bool | None = None
    remapped_corrected: int | None = None
    remapped_uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    retired_pages: int | None = None
    retire_pending: bool | None = None
    temperature_c: int | None = None
    slowdown_c: int | None = None
    """Where the GPU begins to slow itself down."""
    margin_c: int | None = None
    """Degrees left until then, on newer GPUs."""
    clock_reasons: int | None = None
    """NVML's bits for why the clocks are not higher."""
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_replays: int | None = None
    nvlinks: tuple[bool, ...] = ()
    """Each link that the GPU has, whether it is active."""
    nvlink_errors: int | None = None
    """Replays, recoveries and CRC errors of all links together."""
    fabric_state: int | None = None
    fabric_status: int | None = None
    fabric_health: int | None = None
    persistence: bool | None = None
    inforom_error: str | None = None
    """Empty when NVML found its InfoROM valid."""
    memory_used_mib: int | None = None
    """Without what the driver keeps for itself."""
    processes: tuple[GpuProcess, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFiles:
    """Read small text files; the answer maps each path to its text, or None where it is absent."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTree:
    """Read every small text file that matches one of the glob patterns, `max_files` at most (sorted by path).

    Paths below /sys and /proc are looked up where the settings say that those are (`agent.sys_dir`,
    `agent.proc_dir`), here and in ReadFiles; the answer has the names that were asked for. With `needs`, what a
    pattern's first wildcard stands for is passed over where it has no such file: a node may have hundreds of virtual
    interfaces, and only those with a `device` are looked at.
    """

    patterns: tuple[str, ...]
    max_files: int = 1024
    needs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListProcesses:
    """Every process of the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindProcess:
    """A process of the node whose name begins with `prefix`, or none. It is not looked for on a node where no file
    matches one of the patterns `where`."""

    prefix: str
    where: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchMounts:
    """Ask each file system in a child that may be killed, or left behind when it hangs in the kernel; a mount point
    whose last child still hangs is not touched again.

    Looked at are the mount points `paths` (one that is none is told so) and every mount of the file system `types`,
    `max_mounts` at most. /proc/mounts is looked up as in ReadTree.
    """

    paths: tuple[str, ...]
    timeout_s: float = 5.0
    types: tuple[str, ...] = ()
    max_mounts: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsage:
    """statvfs of each mount point, in a thread that may be abandoned: a hung mount must not hang the agent."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgram:
    """Run one program (argv, never a shell) with a time limit; its output is cut at `max_bytes`.

    `env` is laid over the agent's own environment. One that is not installed is a failed look, unless it
    `may_be_absent`: then the answer has no status. `stamp_env` names a variable that shall hold the time (UTC,
    20261121T174000Z).
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 10.0
    max_bytes: int = 4096
    may_be_absent: bool = False
    stamp_env: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOnEach:
    """Run a program once for each path (sorted, `max_paths` at most) that matches a glob pattern, as its last argument.

    The answer maps each path to the output; a program that is not installed has no status, else it is 0.
    """

    patterns: tuple[str, ...]
    argv: tuple[str, ...]
    timeout_s: float = 10.0
    max_paths: int = 16
    max_bytes: int = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelClock:
    """Whether the kernel holds its clock for synchronised (adjtimex)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskMunge:
    """Have munged make a credential and read it again; no status where there is no libmunge, else 0 or 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolUsage:
    """statvfs of slurmd's spool folder, as the slurm.conf at `slurm_conf` (or slurmd's own copy of it) names it."""

    node: str
    slurm_conf: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryGpus:
    """Ask NVML for all that it tells of each GPU; no GPU at all where there is no NVIDIA driver."""

    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadClock:
    """The head's clock against ours, measured on the connection."""


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
    """`state` is the kernel's letter (`D`, `Z`, ...), `started` in Unix seconds; `name` is hostile text. `uid` is the
    effective one. `ticks` is the CPU time that it has used, in the kernel's clock ticks: it stands still in a process
    that is stuck."""

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
    """stdout of the program, or stderr when it wrote nothing there."""
    truncated: bool = False
    """More output came than was asked for, and was thrown away."""
    gpus: tuple[Gpu, ...] | None = None
    hung: str = ""
    """NVML did not answer in time: what was waited for. Then there are no `gpus`."""
    processes: tuple[Process, ...] = ()
    mounts: dict[str, str] = field(default_factory=dict)
    """Mount point -> empty when it answered, else what happened (`hung`, `not mounted` or an error)."""
    skew_s: float | None = None
    synchronised: bool | None = None
