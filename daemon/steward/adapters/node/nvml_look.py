"""The look at every GPU, in the child that uses NVML. Values that a driver or a GPU does not have are left out."""

from collections.abc import Callable, Iterable
from typing import Any

import pynvml  # type: ignore[import-untyped]

Record = dict[str, Any]
_GONE = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
_MIB = 1 << 20
_FIELDS = {
    pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: "recovery_action",
    pynvml.NVML_FI_DEV_ECC_DBE_VOL_TOTAL: "ecc_uncorrected",
    pynvml.NVML_FI_DEV_REMAPPED_COR: "remapped_corrected",
    pynvml.NVML_FI_DEV_REMAPPED_UNC: "remapped_uncorrected",
    pynvml.NVML_FI_DEV_REMAPPED_PENDING: "remap_pending",
    pynvml.NVML_FI_DEV_REMAPPED_FAILURE: "remap_failed",
    pynvml.NVML_FI_DEV_RETIRED_PENDING: "retire_pending",
    pynvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER: "pcie_replays",
}
_FLAGS = ("remap_pending", "remap_failed", "retire_pending")
_RETIRED = (pynvml.NVML_FI_DEV_RETIRED_SBE, pynvml.NVML_FI_DEV_RETIRED_DBE)
_LINK_ERRORS = (
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY,
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC,
    pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS,
)
"""The counters of NVLink errors: the first three up to Hopper, the last from Blackwell on."""
_READ_AS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""The member of the value union, by NVML's value type."""


def fields(handle: Any) -> dict[str, Any]:
    """Return the fields that this GPU has, by the names of model/probe.Gpu. Raises NVMLError if the GPU is gone."""
    values = _values(handle, [*_FIELDS, *_RETIRED])
    record: dict[str, Any] = {name: values[field, 0] for field, name in _FIELDS.items() if (field, 0) in values}
    retired = [values[field, 0] for field in _RETIRED if (field, 0) in values]
    if retired:
        record["retired_pages"] = sum(retired)
    return record | {name: bool(record[name]) for name in _FLAGS if name in record}


def nvlink_errors(handle: Any, links: int) -> int | None:
    """Return the sum of the errors of all NVLinks; None if NVML does not count them."""
    values = _values(handle, [(field, link) for field in _LINK_ERRORS for link in range(links)])
    return sum(values.values()) if values else None


def _values(handle: Any, wanted: Iterable[Any]) -> dict[tuple[int, int], int]:
    """Return the values that the GPU has, by (field, scope). Raises NVMLError if the GPU is gone."""
    try:
        answered = pynvml.nvmlDeviceGetFieldValues(handle, list(wanted))
    except pynvml.NVMLError as error:
        if error.value in _GONE:
            raise
        return {}
    for one in answered:
        if one.nvmlReturn in _GONE:
            raise pynvml.NVMLError(one.nvmlReturn)
    good = (one for one in answered if one.nvmlReturn == pynvml.NVML_SUCCESS and one.valueType < len(_READ_AS))
    return {(one.fieldId, one.scopeId): int(getattr(one.value, _READ_AS[one.valueType])) for one in good}


_PARTS: tuple[Callable[[Any], Record], ...]


def gpus(*, with_inforom: bool) -> list[Record]:
    """Return a record for each GPU, with the names of model/probe.Gpu. Raises NVMLError if NVML does not answer."""
    return [_gpu(index, with_inforom) for index in range(pynvml.nvmlDeviceGetCount())]


def uses() -> list[Record]:
    """Return a record for each GPU with only what it does and for which processes. Raises NVMLError."""
    return [_use_of(index) for index in range(pynvml.nvmlDeviceGetCount())]


def _use_of(index: int) -> Record:
    record: Record = {"index": index}
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        record["uuid"] = pynvml.nvmlDeviceGetUUID(handle)
        busy = _answer(pynvml.nvmlDeviceGetUtilizationRates, handle)
        users = _answer(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
        return record | {
            "busy_percent": None if busy is None else busy.gpu,
            "memory_busy_percent": None if busy is None else busy.memory,
            "energy_mj": _answer(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle),
            "processes": None if users is None else [_user(one) for one in users],
            "clock_reasons": _clock_reasons(handle),
            "sm_mhz": _answer(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
        }
    except pynvml.NVMLError as error:
        return record | {"error": str(error), "code": error.value}


def _gpu(index: int, with_inforom: bool) -> Record:
    """Return the record of a GPU; an error of the GPU ends the look at it, with NVML's own message."""
    record: Record = {"index": index}
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        record["uuid"] = pynvml.nvmlDeviceGetUUID(handle)
        record["name"] = pynvml.nvmlDeviceGetName(handle)
        _prove_alive(handle)
        for part in _PARTS:
            record |= part(handle)
        if with_inforom:
            record |= _inforom(handle)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_CORRUPTED_INFOROM:
            return record | {"inforom_error": str(error)}
        return record | {"error": str(error), "code": error.value}
    return record


def _prove_alive(handle: Any) -> None:
    """Ask two questions that every GPU can answer unless it is lost. Raises NVMLError."""
    for ask in (pynvml.nvmlDeviceGetMemoryInfo, lambda gpu: pynvml.nvmlDeviceGetTemperature(gpu, 0)):
        try:
            ask(handle)
        except pynvml.NVMLError as error:
            if error.value != pynvml.NVML_ERROR_NOT_SUPPORTED:
                raise


def _answer(ask: Callable[..., Any], *arguments: Any) -> Any:
    """Return the answer; None if this GPU or driver has none. Raises NVMLError only if the GPU is gone."""
    try:
        return ask(*arguments)
    except pynvml.NVMLError as error:
        if error.value in _GONE:
            raise
        return None


def _identity(handle: Any) -> Record:
    pci = _answer(pynvml.nvmlDeviceGetPciInfo_v3, handle)
    return {
        "serial": _answer(pynvml.nvmlDeviceGetSerial, handle) or "",
        "vbios": _answer(pynvml.nvmlDeviceGetVbiosVersion, handle) or "",
        "bus": "" if pci is None else _text(pci.busId),
    }


def _text(told: Any) -> str:
    """Return the text of an answer, which some versions of pynvml give as bytes."""
    return told.decode("ascii", "replace") if isinstance(told, bytes) else str(told)


def _memory(handle: Any) -> Record:
    def corrected(location: int) -> Any:
        kind, since = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_VOLATILE_ECC
        return _answer(pynvml.nvmlDeviceGetMemoryErrorCounter, handle, kind, since, location)

    sram = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    record = {
        "ecc_corrected_dram": corrected(pynvml.NVML_MEMORY_LOCATION_DRAM),
        "ecc_corrected_sram": corrected(pynvml.NVML_MEMORY_LOCATION_SRAM),
    }
    if _answer(pynvml.nvmlDeviceGetSramEccErrorStatus, handle, pynvml.byref(sram)) is not None:
        record["sram_uncorrected"] = sram.aggregateUncParity + sram.aggregateUncSecDed
        record["sram_limit_exceeded"] = bool(sram.bThresholdExceeded)
    return record


def _heat(handle: Any) -> Record:
    slowdown = pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
    return {
        "temperature_c": _answer(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
        "slowdown_c": _answer(pynvml.nvmlDeviceGetTemperatureThreshold, handle, slowdown),
        "margin_c": _answer(pynvml.nvmlDeviceGetMarginTemperature, handle),
        "clock_reasons": _clock_reasons(handle),
    }


def _clock_reasons(handle: Any) -> Any:
    """Return the clock reasons, by either name of the call, which was renamed with driver 535."""
    reasons = _answer(pynvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    return reasons if reasons is not None else _answer(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)


def _links(handle: Any) -> Record:
    states: list[bool] = []
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        active = _answer(pynvml.nvmlDeviceGetNvLinkState, handle, link)
        if active is None:
            break
        states.append(bool(active))
    return {
        "pcie_width": _answer(pynvml.nvmlDeviceGetCurrPcieLinkWidth, handle) or None,
        "pcie_width_max": _answer(pynvml.nvmlDeviceGetMaxPcieLinkWidth, handle) or None,
        "nvlinks": states,
        "nvlink_errors": nvlink_errors(handle, len(states)) if states else None,
    }


def _fabric(handle: Any) -> Record:
    info = pynvml.c_nvmlGpuFabricInfo_v2_t()
    if _answer(pynvml.nvmlDeviceGetGpuFabricInfoV, handle, pynvml.byref(info)) is None:
        return {}
    return {"fabric_state": info.state, "fabric_status": info.status, "fabric_health": info.healthMask}


def _use(handle: Any) -> Record:
    memory = _answer(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    users = _answer(pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    persistence = _answer(pynvml.nvmlDeviceGetPersistenceMode, handle)
    return {
        "persistence": None if persistence is None else bool(persistence),
        "memory_used_mib": None if memory is None else memory.used // _MIB,
        "processes": None if users is None else [_user(one) for one in users],
    }


def _user(process: Any) -> Record:
    used = process.usedGpuMemory
    return {"pid": process.pid, "mib": None if used is None else used // _MIB}


def _inforom(handle: Any) -> Record:
    try:
        pynvml.nvmlDeviceValidateInforom(handle)
    except pynvml.NVMLError as error:
        if error.value in (*_GONE, pynvml.NVML_ERROR_CORRUPTED_INFOROM):
            raise
        return {}
    return {"inforom_error": ""}


_PARTS = (_identity, fields, _memory, _heat, _links, _fabric, _use)
