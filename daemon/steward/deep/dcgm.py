"""What `dcgmi diag -j` says, judged: a test that could not run is not a bad GPU."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from steward.deep.said import Here
from steward.model.deep import Measure

_SET_UP = re.compile(
    r"unable to|could not|cannot|permission|not supported|not installed|in use|another (process|instance)"
    r"|time[d -]?out|library|environment|initiali[sz]",
    re.IGNORECASE,
)
_HARDWARE_IN_DEPLOYMENT = re.compile(r"page retirement|row remap|inforom", re.IGNORECASE)


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


def judge_dcgm(here: Here, text: str, level: int, seconds: float) -> Measure:
    """FAILED only for a failed test of hardware; a failed set-up or no sensible answer is UNKNOWN."""
    results = list(_results(text))
    failed = [one for one in results if one.status == "fail"]
    hard = [one for one in failed if not one.is_set_up]
    if hard:
        gpu = f" on GPU {hard[0].gpu}" if hard[0].gpu else ""
        return here.bad("gpu.dcgm", f"level {level}: {hard[0].test}{gpu} failed: {hard[0].text}", seconds=seconds)
    if failed:
        said = f"level {level}: {failed[0].test} could not be done: {failed[0].text}"
        return here.unknown("gpu.dcgm", said, seconds)
    passed = sum(one.status == "pass" for one in results)
    if not passed:
        return here.unknown("gpu.dcgm", f"level {level}: dcgmi reported no test that passed", seconds)
    return here.good("gpu.dcgm", float("nan"), "", f"level {level}: {passed} results passed", seconds)


def _results(text: str) -> Iterator[_Result]:
    try:
        said = json.loads(text[text.index("{") :])
    except (ValueError, RecursionError):
        return
    for body in said.values() if isinstance(said, dict) else ():
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
    """A text in DCGM 3, a list of objects from 4 on."""
    first = said[0] if isinstance(said, list) and said else said
    return str(first.get("warning", "")) if isinstance(first, dict) else str(first or "")


def _list(record: object, key: str) -> list[Mapping[str, Any]]:
    found = record.get(key) if isinstance(record, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
