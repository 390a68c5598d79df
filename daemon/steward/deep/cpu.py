"""Every core busy with arithmetic of which the answer is known: a core that errs is found, and how fast all are."""

import hashlib
import math
import shutil
import time
import zlib

from steward.adapters.process import Failed, run
from steward.deep.budget import Budget
from steward.deep.said import Here
from steward.deep.workers import Told, on_every_core
from steward.model.deep import Measure

KNOWN = "3aee69797a6aed38404fbac425a02226bc9d1c871d42bc210286a1dfaf92d2ce"
"""What every healthy core finds in one round: integers, IEEE doubles and SHA-256 are the same on all machines."""
_NG_FAILED = 2
_DATA = bytes(range(256)) * 1024


def arithmetic() -> str:
    """One round (about 50 ms), as a digest."""
    digest = hashlib.sha256()
    for turn in range(40):
        digest.update(_DATA)
        digest.update(pow(3, 10**60 + turn, 2**521 - 1).to_bytes(66, "big"))
    value = 0.5
    for turn in range(1, 60_000):
        value = math.sqrt(value * 1.0000001 + 1.0 / turn) - value / (turn + 3.0)
        value = abs(value) + 0.25
    digest.update(value.hex().encode())
    packed = zlib.compress(_DATA, 1)
    digest.update(zlib.decompress(packed))
    return digest.hexdigest()


def check_cpu(here: Here, budget: Budget, *, known: str = KNOWN) -> list[Measure]:
    """Half of the budget goes to stress-ng where that is installed."""
    tool = shutil.which("stress-ng")
    own = _own(here, budget.part(0.5) if tool else budget, known)
    if tool is None:
        return [own, here.skipped("cpu.stress_ng", "stress-ng is not installed")]
    return [own, _stress_ng(here, tool, budget)]


def _own(here: Here, budget: Budget, known: str) -> Measure:
    def work(number: int, mine: Budget) -> dict[str, float | str]:
        rounds, wrong, began = 0, 0, time.process_time()
        while mine.left_s > 0 or rounds == 0:
            wrong += arithmetic() != known
            rounds += 1
        return {"rounds": rounds, "wrong": wrong, "seconds": time.process_time() - began}

    began = time.monotonic()
    return judge_cores(here, on_every_core(work, budget), time.monotonic() - began)


def judge_cores(here: Here, told: list[Told], seconds: float) -> Measure:
    """A core that erred fails the node; one that did not answer is not known."""
    wrong = [one.core for one in told if one.answer.get("wrong")]
    lost = [one for one in told if one.lost or "rounds" not in one.answer]
    if wrong:
        shown = ",".join(map(str, wrong[:16]))
        return here.bad("cpu.verify", f"{len(wrong)} of {len(told)} cores calculated wrongly: {shown}", seconds=seconds)
    if lost or not told:
        why = lost[0].lost or "no answer" if lost else "no core may be used"
        return here.unknown("cpu.verify", f"{len(lost)} of {len(told)} cores did not answer: {why}", seconds)
    # Per second of CPU time: who else uses the machine is no property of its cores, their frequency is.
    speed = sum(float(one.answer["rounds"]) / max(float(one.answer["seconds"]), 1e-6) for one in told)
    return here.good("cpu.verify", speed, "rounds/s", f"{len(told)} cores", seconds)


def _stress_ng(here: Here, tool: str, budget: Budget) -> Measure:
    seconds = int(budget.left_s - 1)
    if seconds < 1:
        return here.skipped("cpu.stress_ng", "no time left for it")
    argv = [tool, "--cpu", "0", "--verify", "--oomable", "--timeout", f"{seconds}s"]
    try:
        done = run(argv, timeout_s=seconds + 1.0, check=False, max_bytes=1 << 20)
    except Failed as error:
        return here.unknown("cpu.stress_ng", str(error), seconds)
    said = [line for line in (done.text + done.error_text).splitlines() if "fail:" in line]
    if done.returncode == _NG_FAILED and said:
        return here.bad("cpu.stress_ng", said[0].strip(), seconds=done.seconds)
    if done.returncode != 0:
        return here.unknown("cpu.stress_ng", f"stress-ng ended with status {done.returncode}", done.seconds)
    return here.good("cpu.stress_ng", done.seconds, "s", "stress-ng --verify", done.seconds)
