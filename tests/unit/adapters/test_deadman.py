"""A process that stands still is ended by the kernel; one that is alive is not."""

import signal
import subprocess
import sys

from tests.fakes.until import FACT_S

STANDS_STILL = """
import os, signal
from steward.adapters.clock import steady_now
from steward.adapters.deadman import Deadman
timer = Deadman()
timer.set(steady_now() + 3600.0)
timer.set(steady_now() + 0.2)
os.kill(os.getpid(), signal.SIGSTOP)
print("it went on")
"""
IS_SPARED = """
import time
from steward.adapters.clock import steady_now
from steward.adapters.deadman import Deadman
timer = Deadman()
timer.set(steady_now() + 0.2)
timer.set(None)
time.sleep(0.5)
print("it went on")
"""


def test_a_stopped_process_is_ended_at_its_time() -> None:
    done = subprocess.run([sys.executable, "-c", STANDS_STILL], capture_output=True, text=True, timeout=FACT_S)

    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")


def test_a_process_whose_timer_was_disarmed_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", IS_SPARED], capture_output=True, text=True, timeout=FACT_S)

    assert (done.returncode, done.stdout) == (0, "it went on\n")
