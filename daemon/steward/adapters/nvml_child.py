"""The child that asks NVML: one JSON list of GPUs on stdout. Run by `probe`, with a time limit."""

import json
import sys
from typing import Any

try:
    import pynvml  # type: ignore[import-untyped]
except ImportError:
    sys.exit("nvidia-ml-py is not installed: install steward-slurm with its extra [gpu] on nodes with GPUs")


def main() -> int:
    """Exit status 1 with a line on stderr when NVML itself cannot be asked."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        print(f"NVML cannot be initialised: {error}", file=sys.stderr)
        return 1
    try:
        print(json.dumps([_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())]))
    finally:
        pynvml.nvmlShutdown()
    return 0


def _gpu(index: int) -> dict[str, Any]:
    """Identity, and two calls that a lost GPU does not answer."""
    record: dict[str, Any] = {"index": index, "uuid": "", "name": "", "error": "", "code": 0}
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        record["uuid"] = pynvml.nvmlDeviceGetUUID(handle)
        record["name"] = pynvml.nvmlDeviceGetName(handle)
        pynvml.nvmlDeviceGetMemoryInfo(handle)
        pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_NOT_SUPPORTED:
            record["error"] = str(error)
            record["code"] = error.value
    return record


if __name__ == "__main__":
    sys.exit(main())
