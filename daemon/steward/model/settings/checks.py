"""The tables `[checks.*]`: one per check of `steward/checks/`, named by the check's id."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from steward.model.dotted import flat
from steward.model.section import Section, Words
from steward.model.setting_types import CheckMode


class SlurmdCheck(Section):
    """slurmd answers, as `scontrol show slurmd` asks it."""

    mode: CheckMode = Field(default=CheckMode.DRAIN, description="What a failure does.")
    timeout_s: float = Field(default=1.0, ge=0.1, le=60, description="How long slurmd has to answer.")


class DiskCheck(Section):
    """Space and inodes of local file systems."""

    mode: CheckMode = Field(default=CheckMode.DRAIN, description="What a failure does.")
    paths: Words = Field(
        default=("/", "/tmp", "/var"), description="Mount points to look at; an absent one is skipped."
    )
    users: Words = Field(
        default=("/tmp", "/var/tmp", "/dev/shm"),
        description="Folders that users may fill, local scratch too. A full file system that holds one is only "
        "reported.",
    )
    full_percent: float = Field(
        default=90.0, gt=0, le=100, description="Bad from this share of space or inodes in use ..."
    )
    clear_percent: float = Field(default=80.0, gt=0, le=100, description="... until less than this is in use.")


class MountsCheck(Section):
    """File systems that must be mounted and writable."""

    mode: CheckMode = Field(default=CheckMode.DRAIN, description="What a failure does.")
    writable: Words = Field(default=("/",), description="Mount points that must not be read-only.")
    present: Words = Field(default=(), description="Paths that must be mount points.")
    shared: Words = Field(
        default=(),
        description="Shared file systems that must be mounted and answer (check `fs.shared`, which never touches a "
        "node); none named: all that are mounted of a shared type (NFS, Lustre, ...).",
    )


class ServicesCheck(Section):
    """The units that the check `svc.units` looks at."""

    units: Words = Field(
        default=(
            "munge.service",
            "ssh.service",
            "sshd.service",
            "chrony.service",
            "chronyd.service",
            "systemd-timesyncd.service",
            "nvidia-persistenced.service",
            "nvidia-dcgm.service",
            "nvidia-imex.service",
            "containerd.service",
            "docker.service",
        ),
        description="systemd units that must not have failed; those that are not installed are left out.",
    )


class ModulesCheck(Section):
    """The kernel modules that the check `os.modules` looks at."""

    required: Words = Field(
        default=(),
        description="Kernel modules that must be loaded; what is built into the kernel is not one.",
    )


class MemoryCheck(Section):
    """The machine's memory against what slurm.conf says."""

    mode: CheckMode = Field(default=CheckMode.DRAIN, description="What a failure does.")
    tolerance_percent: float = Field(
        default=5.0, ge=0, le=100, description="Bad when the memory is more than this below RealMemory."
    )


class KernelLogCheck(Section):
    """Lines of the kernel log that tell of broken hardware (Xid, MCE, NVMe, remount read-only)."""

    mode: CheckMode = Field(default=CheckMode.DRAIN, description="What a failure does.")


class GpuCheck(Section):
    """Every GPU is there and answers through NVML (skipped on nodes without GPUs)."""

    mode: CheckMode = Field(default=CheckMode.DRAIN, description="What a failure does.")
    expected_count: int | None = Field(
        default=None, ge=0, le=1024, description="GPUs that must be there; none: as many as the driver lists."
    )


class ClockCheck(Section):
    """The node's clock against the head's; munge refuses credentials when they differ by minutes."""

    mode: CheckMode = Field(default=CheckMode.REPORT, description="What a failure does.")
    max_skew_s: float = Field(default=30.0, gt=0, le=300, description="Bad from this difference on.")


class NetChecks(Section):
    """Ethernet interfaces; the modes of `net.operstate` and `net.carrier` are in `[checks.mode]`."""

    interfaces: Words = Field(
        default=(), description="Interfaces to look at; empty: every one with a device behind it (no veth, no bond)."
    )


class SiteChecks(Section):
    """The site's own executables in `agent.site_checks_dir`."""

    mode: CheckMode = Field(default=CheckMode.REPORT, description="What a failure of one does.")
    timeout_s: float = Field(
        default=10.0,
        ge=0.1,
        le=600,
        description="Time limit of each; the result of a check that takes longer is unknown.",
    )
    modes: Annotated[Mapping[str, CheckMode], BeforeValidator(flat)] = Field(
        default_factory=dict, description="Mode by file name, where it differs."
    )
    every_s: Annotated[Mapping[str, float], BeforeValidator(flat)] = Field(
        default_factory=dict, description="Seconds between two runs by file name, where it is not `check_interval_s`."
    )
    params: Annotated[Mapping[str, str], BeforeValidator(flat)] = Field(
        default_factory=dict, description="What a file gets in `HC_TEST_PARAMS`, by its name."
    )
    nhc: str = Field(
        default="",
        description="A configuration of LBNL Node Health Check to run as the check `site.nhc`, such as "
        "`/etc/nhc/nhc.conf`; nhc itself then marks no node. Its name in the tables here is `nhc`.",
    )


class ChecksSettings(Section):
    """The health checks: each has `mode` (`off`, `report`, `drain`) and its own limits."""

    slurmd: SlurmdCheck = SlurmdCheck()
    disk: DiskCheck = DiskCheck()
    mounts: MountsCheck = MountsCheck()
    services: ServicesCheck = ServicesCheck()
    modules: ModulesCheck = ModulesCheck()
    memory: MemoryCheck = MemoryCheck()
    kernel_log: KernelLogCheck = KernelLogCheck()
    gpu: GpuCheck = GpuCheck()
    clock: ClockCheck = ClockCheck()
    net: NetChecks = NetChecks()
    site: SiteChecks = SiteChecks()
    mode: Annotated[Mapping[str, CheckMode], BeforeValidator(flat)] = Field(
        default_factory=dict,
        description="Mode by check id or family (`ib` is all of `ib.*`) for checks without a table of their own; "
        "`steward checks` lists them.",
    )
    limit: Annotated[Mapping[str, float], BeforeValidator(flat)] = Field(
        default_factory=dict,
        description="The site's own thresholds, by the names that `steward checks` lists.",
    )

    def modes(self) -> dict[str, str]:
        """check id -> mode; a site check's id is `site.<file name>`, and `site` stands for those not named."""
        each = (
            ("slurmd", self.slurmd.mode),
            ("disk", self.disk.mode),
            ("mounts", self.mounts.mode),
            ("memory", self.memory.mode),
            ("kernel_log", self.kernel_log.mode),
            ("gpu", self.gpu.mode),
            ("clock", self.clock.mode),
            ("site", self.site.mode),
        )
        named = ((f"site.{name}", mode) for name, mode in self.site.modes.items())
        return {check: mode.value for check, mode in (*each, *named, *self.mode.items())}
