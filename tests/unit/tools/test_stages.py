"""What `make test` does with a stage that takes too long."""

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.fakes.until import until

ROOT = Path(__file__).resolve().parents[3]
STAGES = ROOT / "tools" / "stages.py"
SLOW = """slow:
\t@trap 'echo ended in order; kill $$!' INT; sleep 600 & wait
"""


def test_a_stage_that_is_too_slow_can_end_in_order_also_where_a_script_started_us_in_the_background(
    tmp_path: Path,
) -> None:
    (tmp_path / "Makefile").write_text(SLOW)
    """On a busy machine it may not have begun yet when its first limit is over."""
    for minutes in ("0.03", "0.3", "1"):
        in_background = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, str(STAGES), f"slow:{minutes}"]
        done = subprocess.run(in_background, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert f"took longer than {minutes} min" in done.stdout
        if "ended in order" in done.stdout:
            break
    assert "ended in order" in (tmp_path / ".results" / "slow.log").read_text()


def test_a_run_that_is_ended_from_outside_ends_its_stages_in_order(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(SLOW.replace("sleep 600", "touch began; sleep 600"))
    argv = [sys.executable, str(STAGES), "slow:5"]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as run:
        until("its stage is under way", (tmp_path / "began").exists)
        run.terminate()
        said, _ = run.communicate()
    assert "=== slow ended by us after" in said
    assert "ended in order" in said, "the end of its log"


def test_a_run_that_is_ended_from_outside_leaves_nothing_that_a_stage_put_out_of_its_session(tmp_path: Path) -> None:
    (tmp_path / "daemon.sh").write_text("trap '' INT TERM; echo $$ >pid; mv pid began; while :; do sleep 0.1; done")
    stage = "bed:\n\t@setsid sh daemon.sh & wait\n"
    (tmp_path / "Makefile").write_text(stage)
    around = {"STEWARD_RUN": str(uuid4()), "STEWARD_STAGES": str(uuid4())}
    with (
        subprocess.Popen(["sleep", "600"], env=os.environ | around) as beside,
        subprocess.Popen([sys.executable, str(STAGES), "bed:5"], cwd=tmp_path, env=os.environ | around) as run,
    ):
        until("its stage is under way", (tmp_path / "began").exists)
        run.terminate()
        run.wait()
        assert beside.poll() is None, "it is of the run that this one is a part of"
        beside.kill()
    line = Path("/proc", (tmp_path / "began").read_text().strip(), "cmdline")
    assert not line.exists() or not line.read_bytes(), "only what waits to be reaped has none"


def test_being_asked_to_end_interrupts_no_stage_that_is_just_being_started() -> None:
    """It would be known to nobody, and be left behind."""
    told = "end_asked = stages.EndAsked(); os.kill(os.getpid(), 15); print('started', flush=True); end_asked.heed()"
    command = [sys.executable, "-c", f"import os, sys; sys.path.insert(0, 'tools'); import stages; {told}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "started\n"
    assert "KeyboardInterrupt" in done.stderr


@pytest.mark.parametrize("status", ["0", "3"], ids=["passed", "failed"])
def test_a_stage_waits_for_one_of_another_line_and_meanwhile_no_line_waits_for_it(tmp_path: Path, status: str) -> None:
    """`base` ends when `other` has begun, which comes after the stage that waits."""
    (tmp_path / "Makefile").write_text(
        f"base:\n\t@until [ -e other ]; do sleep 0.05; done; sleep 0.5; touch base; exit {status}\n"
        "first:\n\t@touch first\n"
        "needs:\n\t@[ -e first ] && [ -e base ]\n"
        "other:\n\t@touch other\n"
    )
    one = str(min(os.sched_getaffinity(0)))
    lines = ("base:1", "//", "first:1", "after=base", "needs:1", "//", "other:1")
    command = ["taskset", "--cpu-list", one, sys.executable, str(STAGES), *lines]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert "=== needs passed" in done.stdout, done.stdout


def test_a_stage_that_would_wait_for_none_that_comes_before_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("%:\n\t@touch $@\n")
    done = run_stages(tmp_path, "after=late", "early:1", "//", "late:1")
    assert done.returncode == 1
    assert "after=late: no stage of that name comes before it" in done.stderr
    assert not (tmp_path / "early").exists()


def test_a_line_goes_on_after_a_stage_that_failed_and_the_run_fails(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("bad:\n\t@exit 3\n\nnext:\n\t@touch next\n")
    done = run_stages(tmp_path, "bad:1", "next:1")
    assert done.returncode == 1
    assert (tmp_path / "next").exists()


def run_stages(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(STAGES), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_the_summary_names_what_failed_and_why(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_a() -> None:\n    assert 2 + 2 == 5, 'arithmetic holds'\n")
    (tmp_path / "Makefile").write_text(
        f"sums:\n\t@{sys.executable} -m pytest -q test_it.py --junitxml=$(STEWARD_RESULTS)/sums.xml\n"
    )
    done = subprocess.run(
        [sys.executable, str(STAGES), "sums:1"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    summary = done.stdout.rpartition("=== sums failed (2)")[2]
    assert "failed in sums: test_it.test_a: AssertionError: arithmetic holds" in summary
    assert summary.endswith("0 passed, 1 failed, 0 skipped\n")


TEST = """
import os
from pathlib import Path

def test_{name}(request):
    request.addfinalizer(lambda: request.node.add_report_section("teardown", "stewardd", "a log"))
    here = Path(__file__).parent
    (here / "running-{name}").touch()
    first = "STEWARD_AGAIN" not in os.environ
    print("the machine is", "busy" if first else "quiet", sorted(each.name for each in here.glob("running-*")))
    (here / "running-{name}").unlink()
    assert not first, "too late"
    assert not hasattr(request.config, "workerinput"), "it is not alone"
    assert (here / "other-over").exists(), "another stage runs beside it"
"""
GOOD = "def test_good():\n    pass\n"


def a_project(folder: Path, **tests: str) -> None:
    """Stages of tests in two processes, and one that ends later than the first of them. The tests have an option of
    their own, as the beds of e2e tests are chosen by one; its value is a folder's name, too."""
    (folder / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--bed', required=True)\n")
    later = "\t@until [ -s $(STEWARD_RESULTS)/tests.xml ]; do sleep 0.05; done; sleep 0.5; touch other-over\n"
    makefile = f"other:\n{later}"
    for name, text in tests.items():
        file = folder / f"test_of_{name}.py"
        file.write_text(text)
        argv = f"{sys.executable} -m pytest -q -p tests.again -p no:cacheprovider -n2 --bed docker --rootdir={folder}"
        makefile += f"{name}:\n\t@cd {ROOT} && {argv} {file} --junitxml=$(STEWARD_RESULTS)/$@.xml\n"
    (folder / "Makefile").write_text(makefile)


def test_tests_that_fail_run_again_alone_when_all_else_is_over_and_three_are_forgiven(tmp_path: Path) -> None:
    names = "abc"
    a_project(tmp_path, tests=GOOD + "".join(TEST.format(name=name) for name in names))
    done = run_stages(tmp_path, "tests:2", "//", "other:2")
    assert done.returncode == 0, done.stdout
    assert "3 flaky: .results/flaky.json\n4 passed, 0 failed, 0 skipped\n" in done.stdout
    kept = json.loads((tmp_path / ".results" / "flaky.json").read_text())
    assert sorted(one["test"].rpartition("::")[2] for one in kept) == [f"test_{name}" for name in names]
    assert all("too late" in one["failed"] and "the machine is busy" in one["failed"] for one in kept)
    assert all("the machine is quiet" in one["passed"] for one in kept)
    assert [one["logs"] for one in kept] == ["[Captured stewardd teardown]\na log"] * len(names)
    assert done.stdout.count("logs after the first try:\n[Captured stewardd teardown]\na log\n") == len(names)


def test_of_all_stages_together_three_flaky_tests_are_forgiven(tmp_path: Path) -> None:
    two = "".join(TEST.format(name=name) for name in "ab")
    a_project(tmp_path, tests=two, more=two)
    done = run_stages(tmp_path, "tests:2", "more:2", "//", "other:2")
    assert done.returncode == 1
    assert "4 flaky: .results/flaky.json, more than 3" in done.stdout


def test_of_a_test_that_fails_twice_both_tries_are_shown_and_the_run_fails(tmp_path: Path) -> None:
    """The second may fail for what the first left behind."""
    a_project(
        tmp_path,
        tests=f"{GOOD}\nimport os\n\n\ndef test_it(request):\n"
        "    add = request.node.add_report_section\n"
        "    request.addfinalizer(lambda: add('teardown', 'stewardd', told))\n"
        "    told = 'left behind' if 'STEWARD_AGAIN' in os.environ else 'the true cause'\n    raise OSError(told)\n",
    )
    done = run_stages(tmp_path, "tests:2")
    assert done.returncode == 1
    assert done.stdout.endswith("1 passed, 1 failed, 0 skipped\n")
    said = (tmp_path / ".results" / "tests.again.log").read_text()
    assert "OSError: left behind" in said
    assert "OSError: the true cause" in said
    assert "[Captured stewardd teardown]\nthe true cause\n" in said


def test_a_run_that_fails_otherwise_than_by_tests_has_no_second_try_to_pass(tmp_path: Path) -> None:
    a_project(tmp_path, tests="import nothing_of_that_name\n")
    done = run_stages(tmp_path, "tests:2")
    assert done.returncode == 1
    assert "tests" in done.stdout.rpartition("=== summary")[2]


def test_each_target_of_the_makefile_that_runs_tests_runs_the_failed_ones_again() -> None:
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    runs = [line for line in makefile.splitlines() if line.startswith("\t") and ("PYTEST)" in line or "JUNIT)" in line)]
    assert len(runs) == 9
    assert all(line.endswith("$(AGAIN)") for line in runs), runs
