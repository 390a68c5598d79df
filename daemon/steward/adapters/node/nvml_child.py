"""The child that uses NVML: it answers each line of its input (`look`, `use`) with a line of JSON, and ends with it.

A dead GPU can block a call for ever; then the agent kills this process. The agent itself stays small without NVML. If a
GPU needs a reset, its device file is closed, or the reset would find the GPU busy.
"""

import json
import os
import queue
import sys
import threading
import time
from typing import Any

try:
    import pynvml  # type: ignore[import-untyped]

    from steward.adapters.node import nvml_look
except ImportError:
    pynvml = None

_NO_PYNVML = "nvidia-ml-py is not installed: install steward-slurm with its extra [gpu] on nodes with GPUs"
_USE = b"use"
_INFOROM_EVERY_S = 3600.0
"""Seconds between reads of the InfoROM: the chip is slow, and its content rarely changes."""


class Looks:
    """The looks at NVML, with the last InfoROM result of each GPU."""

    def __init__(self) -> None:
        self._is_open = False
        self._inforom: dict[int, str] = {}
        self._inforom_due = 0.0

    def answer(self, question: bytes) -> dict[str, Any]:
        """Return `{"gpus": [...]}`, or `{"error": ...}` if NVML itself cannot be asked."""
        if pynvml is None:
            return {"error": _NO_PYNVML}
        try:
            self._open()
            gpus = nvml_look.uses() if question == _USE else self._look()
        except pynvml.NVMLError as error:
            self._close()
            return {"error": f"NVML cannot be asked: {error}"}
        if any(map(_wants_repair, gpus)):
            self._close()
        return {"gpus": gpus}

    def _look(self) -> list[dict[str, Any]]:
        now = time.monotonic()
        is_due = now >= self._inforom_due
        gpus = nvml_look.gpus(with_inforom=is_due)
        if is_due:
            self._inforom_due = now + _INFOROM_EVERY_S
            self._inforom = {gpu["index"]: gpu["inforom_error"] for gpu in gpus if "inforom_error" in gpu}
        known = self._inforom
        return [gpu | {"inforom_error": known[gpu["index"]]} if gpu["index"] in known else gpu for gpu in gpus]

    def _open(self) -> None:
        if not self._is_open:
            pynvml.nvmlInit()
            self._is_open = True

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            pynvml.nvmlShutdown()


def _wants_repair(gpu: dict[str, Any]) -> bool:
    return bool(gpu.get("error") or gpu.get("recovery_action") or gpu.get("remap_pending"))


def _read(asked: "queue.SimpleQueue[bytes]") -> None:
    """Read the input in a thread of its own: its end ends the process even while NVML blocks a call."""
    rest = b""
    while chunk := os.read(sys.stdin.fileno(), 4096):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            asked.put(line)
    os._exit(0)


def main() -> int:
    """Answer until the input ends. The first line of the output means that the child is ready."""
    asked: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(asked,), daemon=True).start()
    looks = Looks()
    print("{}", flush=True)
    while True:
        print(json.dumps(looks.answer(asked.get())), flush=True)


if __name__ == "__main__":
    sys.exit(main())
