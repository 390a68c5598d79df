"""Measures of one node's GPUs: DCGM's diagnosis, and arithmetic and memory by PyTorch, where installed."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steward.adapters.process import Failed, run
from steward.deep.tell import MeasureMaker
from steward.deep.workers import Budget, TorchRunner
from steward.model.deep import Measure

_DEVICES = ("nvidia0", "kfd")
_MIN_S = 3.0
_SET_UP = re.compile(
    r"unable to|could not|cannot|permission|not supported|not installed|in use|another (process|instance)"
    r"|time[d -]?out|library|environment|initiali[sz]",
    re.IGNORECASE,
)
_HARDWARE_IN_DEPLOYMENT = re.compile(r"page retirement|row remap|inforom", re.IGNORECASE)


def has_gpu(dev: Path = Path("/dev")) -> bool:
    return any((dev / name).exists() for name in _DEVICES)


def check_gpus(
    here: MeasureMaker, budget: Budget, *, torch: TorchRunner, dcgm_level: int, dev: Path = Path("/dev")
) -> list[Measure]:
    """Measure the GPUs: DCGM (as root only; level 0: not at all) gets up to 60 % of the time, PyTorch the rest."""
    if not has_gpu(dev):
        return [here.skipped("gpu.gemm", "no GPU")]
    told = _dcgm(here, budget.part(0.6), dcgm_level) if dcgm_level else []
    return [*told, *_torch(here, budget, torch)]


def _dcgm(here: MeasureMaker, budget: Budget, level: int) -> list[Measure]:
    tool = shutil.which("dcgmi")
    if tool is None:
        return [here.skipped("gpu.dcgm", "dcgmi is not installed")]
    try:
        done = run([tool, "diag", "-r", str(level), "-j"], timeout_s=budget.left_s, check=False, max_bytes=4 << 20)
    except Failed as error:
        return [here.unknown("gpu.dcgm", f"level {level}: {error}")]
    return [judge_dcgm(here, done.text, level, done.seconds)]


def _torch(here: MeasureMaker, budget: Budget, torch: TorchRunner) -> list[Measure]:
    if not torch.is_there():
        return [here.skipped("gpu.gemm", "PyTorch is not installed")]
    if budget.left_s < _MIN_S:
        return [here.skipped("gpu.gemm", "no time left")]
    try:
        done = torch.run("gpu", f"{budget.left_s * 0.7:.1f}", timeout_s=budget.left_s)
    except Failed as error:
        return [here.unknown("gpu.gemm", str(error))]
    return judge_gpus(here, done.text, done.seconds)


def judge_gpus(here: MeasureMaker, text: str, seconds: float) -> list[Measure]:
    """Judge the lines of `torch_child`, by check: the slowest GPU counts, and a GPU with wrong results fails."""
    found = [one for line in text.splitlines() if isinstance(one := _json_or_none(line), Mapping)]
    trouble = next((str(one["error"]) for one in found if "error" in one), "")
    if trouble:
        return [here.unknown("gpu.gemm", trouble, seconds)]
    measures = []
    for check in sorted({str(one.get("check")) for one in found}):
        results = [one for one in found if one.get("check") == check]
        wrong = [str(one.get("gpu")) for one in results if one.get("wrong")]
        if wrong:
            measures.append(here.bad(check, f"GPU {','.join(wrong)}: {results[0].get('text', 'wrong results')}"))
            continue
        slowest = min(results, key=lambda one: float(one["value"]))
        text = f"{len(results)} GPUs, the slowest is {slowest.get('gpu')}"
        measures.append(here.good(check, float(slowest["value"]), str(slowest.get("unit", "")), text, seconds))
    return measures or [here.unknown("gpu.gemm", "PyTorch printed no result", seconds)]


def _json_or_none(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    category: str
    test: str
    gpu: str
    status: str
    text: str

    @property
    def is_set_up(self) -> bool:
        deployed = self.category.lower() == "deployment" and not _HARDWARE_IN_DEPLOYMENT.search(self.test)
        return deployed or _SET_UP.search(self.text) is not None


def judge_dcgm(here: MeasureMaker, text: str, level: int, seconds: float) -> Measure:
    """Judge DCGM's answer: FAILED if a test of hardware failed; UNKNOWN if only a set-up failed, or no test passed."""
    results = list(_results(text))
    failed = [one for one in results if one.status == "fail"]
    hardware = [one for one in failed if not one.is_set_up]
    if hardware:
        gpu = f" on GPU {hardware[0].gpu}" if hardware[0].gpu else ""
        return here.bad(
            "gpu.dcgm", f"level {level}: {hardware[0].test}{gpu} failed: {hardware[0].text}", seconds=seconds
        )
    if failed:
        said = f"level {level}: {failed[0].test} could not be done: {failed[0].text}"
        return here.unknown("gpu.dcgm", said, seconds)
    passed = sum(one.status == "pass" for one in results)
    if not passed:
        return here.unknown("gpu.dcgm", f"level {level}: dcgmi reported no test that passed", seconds)
    return here.good("gpu.dcgm", float("nan"), "", f"level {level}: {passed} results passed", seconds)


def _results(text: str) -> Iterator[_Result]:
    try:
        answer = json.loads(text[text.index("{") :])
    except (ValueError, RecursionError):
        return
    for body in answer.values() if isinstance(answer, dict) else ():
        for category in _list(body, "test_categories"):
            for test in _list(category, "tests"):
                for one in _list(test, "results"):
                    yield _result(category, test, one)


def _result(category: Mapping[str, Any], test: Mapping[str, Any], one: Mapping[str, Any]) -> _Result:
    return _Result(
        category=str(category.get("category", "")),
        test=str(test.get("name", "a test")),
        gpu=str(one.get("gpu_id", one.get("gpu_ids", one.get("entity_id", "")))),
        status=str(one.get("status", "")).lower(),
        text=_warning(one.get("warnings", one.get("info", ""))),
    )


def _warning(said: object) -> str:
    """Return the first warning."""
    # A text in DCGM 3, a list of objects from 4 on.
    first = said[0] if isinstance(said, list) and said else said
    return str(first.get("warning", "")) if isinstance(first, dict) else str(first or "")


def _list(record: object, key: str) -> list[Mapping[str, Any]]:
    found = record.get(key) if isinstance(record, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
