"""GPUs of one node: DCGM's diagnosis where it is installed, and arithmetic and memory by PyTorch where that is."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from steward.adapters.process import Failed, run
from steward.deep.budget import Budget
from steward.deep.dcgm import judge_dcgm
from steward.deep.said import Here
from steward.deep.torch_door import TorchDoor
from steward.model.deep import Measure

_DEVICES = ("nvidia0", "kfd")
_MIN_S = 3.0


def has_gpu(dev: Path = Path("/dev")) -> bool:
    return any((dev / name).exists() for name in _DEVICES)


def check_gpus(
    here: Here, budget: Budget, *, torch: TorchDoor, dcgm_level: int, dev: Path = Path("/dev")
) -> list[Measure]:
    """DCGM (root only, level 0: not at all) gets up to 60 % of the time, PyTorch the rest."""
    if not has_gpu(dev):
        return [here.skipped("gpu.gemm", "no GPU")]
    told = _dcgm(here, budget.part(0.6), dcgm_level) if dcgm_level else []
    return [*told, *_torch(here, budget, torch)]


def _dcgm(here: Here, budget: Budget, level: int) -> list[Measure]:
    tool = shutil.which("dcgmi")
    if tool is None:
        return [here.skipped("gpu.dcgm", "dcgmi is not installed")]
    try:
        done = run([tool, "diag", "-r", str(level), "-j"], timeout_s=budget.left_s, check=False, max_bytes=4 << 20)
    except Failed as error:
        return [here.unknown("gpu.dcgm", f"level {level}: {error}")]
    return [judge_dcgm(here, done.text, level, done.seconds)]


def _torch(here: Here, budget: Budget, torch: TorchDoor) -> list[Measure]:
    if not torch.is_there():
        return [here.skipped("gpu.gemm", "PyTorch is not installed")]
    if budget.left_s < _MIN_S:
        return [here.skipped("gpu.gemm", "no time left for it")]
    try:
        done = torch.run("gpu", f"{budget.left_s * 0.7:.1f}", timeout_s=budget.left_s)
    except Failed as error:
        return [here.unknown("gpu.gemm", str(error))]
    return judge_gpus(here, done.text, done.seconds)


def judge_gpus(here: Here, text: str, seconds: float) -> list[Measure]:
    """What the child said, an object a line. The slowest GPU stands for the node; one that errs fails it."""
    found = [one for line in text.splitlines() if isinstance(one := _loaded(line), Mapping)]
    trouble = next((str(one["error"]) for one in found if "error" in one), "")
    if trouble:
        return [here.unknown("gpu.gemm", trouble, seconds)]
    measures = []
    for check in sorted({str(one.get("check")) for one in found}):
        those = [one for one in found if one.get("check") == check]
        wrong = [str(one.get("gpu")) for one in those if one.get("wrong")]
        if wrong:
            measures.append(here.bad(check, f"GPU {','.join(wrong)}: {those[0].get('text', 'wrong results')}"))
            continue
        slowest = min(those, key=lambda one: float(one["value"]))
        text = f"{len(those)} GPUs, the slowest is {slowest.get('gpu')}"
        measures.append(here.good(check, float(slowest["value"]), str(slowest.get("unit", "")), text, seconds))
    return measures or [here.unknown("gpu.gemm", "PyTorch said nothing", seconds)]


def _loaded(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None
