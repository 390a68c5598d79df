"""An NVIDIA GPU as NVML tells of it in one look."""

from dataclasses import dataclass


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
