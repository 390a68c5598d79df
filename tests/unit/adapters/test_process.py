"""Other programs are bounded in time and output, and nothing of them is left behind."""

import os
import sys
import tracemalloc
from functools import partial
from pathlib import Path

import pytest

from steward.adapters import process
from steward.adapters.process import Failed, Left, end, run
from steward.ports import Retryable
from tests.fakes.until import FACT_S, LIMITS_S, until


def test_output_status_and_time_come_back() -> None:
    done = run([sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)"], timeout_s=FACT_S)

    assert (done.text, done.error_text, done.returncode, done.truncated) == ("out\n", "err", 0, False)
    assert done.seconds > 0


def test_a_failure_is_one_line_with_command_status_and_both_outputs() -> None:
    with pytest.raises(Retryable) as caught:
        run(["sh", "-c", "echo some; echo bad >&2; exit 3"], timeout_s=FACT_S)
    line = str(caught.value)

    assert len(line.splitlines()) == 1
    assert all(part in line for part in ("sh -c", "rc=3", "some", "bad"))


def test_a_status_is_given_back_where_it_is_wanted() -> None:
    assert run(["sh", "-c", "exit 3"], timeout_s=FACT_S, check=False).returncode == 3


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(Failed, match="nonesuch") as caught:
        run(["nonesuch"], timeout_s=FACT_S)
    assert caught.value.completed is None


def test_a_program_that_hangs_is_ended_in_time_with_all_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 1000 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"
    for limit_s in LIMITS_S:
        with pytest.raises(Failed, match=f"no end within {limit_s:g} s"):
            run(["sh", "-c", script], timeout_s=limit_s)
        if pids.exists():
            break

    for pid in pids.read_text().split():
        until("it is ended", partial(is_dead, int(pid)))


def test_a_child_left_in_the_background_does_not_hold_us_up_and_is_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    done = run(["sh", "-c", f"sleep 1000 & echo $! > {pid}; echo done"], timeout_s=FACT_S)

    assert done.text == "done\n"
    until("it is ended", partial(is_dead, int(pid.read_text())))


def is_dead(pid: int) -> bool:
    """Killed processes may stay as zombies until init reaps them."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_output_is_cut_and_that_is_told() -> None:
    done = run(["sh", "-c", "head -c 300000 /dev/zero"], timeout_s=FACT_S, max_bytes=1000)

    assert (len(done.stdout), done.truncated, done.returncode) == (1000, True, 0)


def test_a_long_output_is_held_once() -> None:
    tracemalloc.start()
    try:
        done = run(["head", "-c", "30000000", "/dev/zero"], timeout_s=FACT_S)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(done.stdout) == 30_000_000
    assert peak < 1.3 * len(done.stdout)


def test_a_large_input_and_a_large_output_do_not_block_each_other() -> None:
    data = os.urandom(3_000_000)

    assert run(["cat"], timeout_s=FACT_S, input=data).stdout == data


def test_a_program_that_does_not_read_its_input_is_no_error() -> None:
    assert run(["true"], timeout_s=FACT_S, input=b"x" * 1_000_000).returncode == 0


def test_a_program_that_has_said_enough_is_ended_and_has_done_its_work() -> None:
    script = "echo delivered; echo working >&2; echo 'transitional, retrying' >&2; exec sleep 1000"

    done = run(["sh", "-c", script], timeout_s=2 * FACT_S, enough="retrying")

    assert (done.text, done.error_text) == ("delivered\n", "working\ntransitional, retrying")
    assert done.seconds < FACT_S
    assert run(["sh", "-c", "echo retrying >&2; exit 1"], timeout_s=FACT_S, enough="retrying").error_text == "retrying"
    with pytest.raises(Failed):
        run(["sh", "-c", "echo refused >&2; exit 1"], timeout_s=FACT_S, enough="retrying")


def test_nothing_is_a_shells_business() -> None:
    assert run(["echo", "$HOME; `id` | cat"], timeout_s=FACT_S).text == "$HOME; `id` | cat\n"


def test_variables_are_laid_over_our_own() -> None:
    done = run(["sh", "-c", 'echo $STEWARD_X; test -n "$PATH"'], timeout_s=FACT_S, env={"STEWARD_X": "y"})

    assert done.text == "y\n"


def test_a_program_that_no_signal_ends_is_left_to_who_has_no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that hangs in the kernel."""
    with monkeypatch.context() as patch:
        patch.setattr(process, "_kill_group", lambda child: None)
        with pytest.raises(Left, match="hangs in the kernel") as left:
            run(("sleep", "60"), timeout_s=0.1, patience_s=0.1)
    assert not is_dead(left.value.child.pid)
    assert end(left.value.child, FACT_S)
    assert is_dead(left.value.child.pid)
