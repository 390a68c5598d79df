"""What NVML tells as numbered fields: many in one call."""

from collections.abc import Iterable
from typing import Any

import pynvml  # type: ignore[import-untyped]

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
"""The first three up to Hopper, the last from Blackwell on."""
_GONE = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
_READ_AS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""By NVML's value type."""


def fields(handle: Any) -> dict[str, Any]:
    """The fields that this GPU has, by the names of model/gpu.Gpu. Raises NVMLError of a GPU that is gone."""
    values = _values(handle, [*_FIELDS, *_RETIRED])
    record: dict[str, Any] = {name: values[field, 0] for field, name in _FIELDS.items() if (field, 0) in values}
    retired = [values[field, 0] for field in _RETIRED if (field, 0) in values]
    if retired:
        record["retired_pages"] = sum(retired)
    return record | {name: bool(record[name]) for name in _FLAGS if name in record}


def nvlink_errors(handle: Any, links: int) -> int | None:
    """Of all links together."""
    values = _values(handle, [(field, link) for field in _LINK_ERRORS for link in range(links)])
    return sum(values.values()) if values else None


def _values(handle: Any, wanted: Iterable[Any]) -> dict[tuple[int, int], int]:
    """(field, scope) -> value of those that the GPU has."""
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
