"""Thresholds of the checks: the tables `[checks.*]` and `[health]` of the settings, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmdLimits:
    mode: str = "drain"
    timeout_s: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLimits:
    mode: str = "drain"
    paths: tuple[str, ...] = ("/", "/tmp", "/var")
    users: tuple[str, ...] = ("/tmp", "/var/tmp", "/dev/shm")
    full_percent: float = 90.0
    clear_percent: float = 80.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MountsLimits:
    mode: str = "drain"
    writable: tuple[str, ...] = ("/",)
    present: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicesLimits:
    units: tuple[str, ...] = (
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
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModulesLimits:
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    mode: str = "drain"
    tolerance_percent: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLogLimits:
    mode: str = "drain"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLimits:
    mode: str = "drain"
    expected_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockLimits:
    mode: str = "report"
    max_skew_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetLimits:
    interfaces: tuple[str, ...] = ()
    """Empty: every physical one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLimits:
    mode: str = "report"
    timeout_s: float = 10.0
    modes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    every_s: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    params: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    nhc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`[checks]`: one field a table. A check whose mode is "off" is not run."""

    slurmd: SlurmdLimits = SlurmdLimits()
    disk: DiskLimits = DiskLimits()
    mounts: MountsLimits = MountsLimits()
    services: ServicesLimits = ServicesLimits()
    modules: ModulesLimits = ModulesLimits()
    memory: MemoryLimits = MemoryLimits()
    kernel_log: KernelLogLimits = KernelLogLimits()
    gpu: GpuLimits = GpuLimits()
    clock: ClockLimits = ClockLimits()
    net: NetLimits = NetLimits()
    site: SiteLimits = SiteLimits()
    mode: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Check id or family -> off | report | drain, for checks without a table of their own."""
    limit: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Threshold name -> number, where it is not the check's own."""
