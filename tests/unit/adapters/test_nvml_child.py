"""The child that asks NVML, with a pynvml of ours: no machine of ours need have a GPU."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import steward
from steward.adapters.process import Completed, run

NVML = """
import time
NVML_TEMPERATURE_GPU, NVML_ERROR_NOT_SUPPORTED = 0, 3
class NVMLError(Exception):
    def __init__(self, value, text):
        super().__init__(text)
        self.value = value
def nvmlInit():
    {init}
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetUUID(handle): return f"GPU-{{handle}}"
def nvmlDeviceGetName(handle): return "H200"
def nvmlDeviceGetMemoryInfo(handle):
    {memory}
def nvmlDeviceGetTemperature(handle, sensor): return 40
"""


def with_path(folder: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join((str(folder), str(Path(steward.__file__).parents[1])))}


def ask(folder: Path, init: str = "pass", memory: str = "pass") -> Completed:
    (folder / "pynvml.py").write_text(NVML.format(init=init, memory=memory))
    argv = (sys.executable, "-P", "-m", "steward.adapters.nvml_child")
    return run(argv, timeout_s=20, env=with_path(folder), check=False)


def gpus(done: Completed) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.line()
    answer: list[dict[str, Any]] = json.loads(done.text)
    return answer


def test_gpus_that_answer_are_named(tmp_path: Path) -> None:
    first, second = gpus(ask(tmp_path))
    assert first == {"index": 0, "uuid": "GPU-0", "name": "H200", "error": "", "code": 0}
    assert second["uuid"] == "GPU-1"


def test_a_lost_gpu_is_named_with_nvmls_error_and_the_others_are_still_asked(tmp_path: Path) -> None:
    first, second = gpus(ask(tmp_path, memory="if handle == 0: raise NVMLError(15, 'GPU is lost')"))
    assert (first["error"], first["code"], first["uuid"]) == ("GPU is lost", 15, "GPU-0")
    assert second["error"] == ""


def test_a_gpu_that_does_not_know_a_question_is_not_lost(tmp_path: Path) -> None:
    assert [one["error"] for one in gpus(ask(tmp_path, memory="raise NVMLError(3, 'Not Supported')"))] == ["", ""]


@pytest.mark.parametrize("init", ["raise NVMLError(9, 'Driver Not Loaded')"])
def test_an_nvml_that_cannot_begin_is_an_error_of_the_look(tmp_path: Path, init: str) -> None:
    done = ask(tmp_path, init=init)
    assert done.returncode == 1
    assert done.error_text == "NVML cannot be initialised: Driver Not Loaded"


def test_without_pynvml_the_package_to_install_is_named(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError('none')")
    argv = (sys.executable, "-P", "-m", "steward.adapters.nvml_child")
    done = run(argv, timeout_s=20, env=with_path(tmp_path), check=False)
    assert done.returncode == 1
    assert "install steward-slurm with its extra [gpu]" in done.error_text
