"""The runner of lifecycle scripts, as a process of its own on a pretended node."""

import json
import os
import signal
from pathlib import Path

import pytest

from steward.adapters.fetch.folder import digest
from steward.adapters.node.setup_dir import SetupDir
from steward.adapters.proc import look
from steward.adapters.wire.order_messages import MAX_LOG
from steward.lifecycle.output import MAX_NODE_LOG, scripts_log
from steward.lifecycle.run import _argv
from steward.model.setup import SetupState
from steward.ports import Permanent
from tests.fakes.setups import NodeDisk
from tests.fakes.until import LIMITS_S, until

pytestmark = pytest.mark.timeout(300)

SLEEP = f"sleep 300.{os.getpid()}"


@pytest.fixture
def disk(tmp_path: Path) -> NodeDisk:
    return NodeDisk(home=tmp_path)


def test_both_scripts_run_in_turn_from_their_folder(disk: NodeDisk) -> None:
    disk.script("#!/bin/sh\necho first >> trace; cat beside.txt >> trace\n")
    disk.script("echo second >> trace\n", "late.sh")
    disk.script("beside\n", "beside.txt")
    report = disk.run(disk.order(hooks=("on_create.sh", "late.sh")))
    assert (report.state, report.step, report.exit_status) == (SetupState.SUCCEEDED, "OnInitComplete", 0)
    assert (disk.root / "scripts/trace").read_text() == "first\nbeside\nsecond\n"
    assert "The lifecycle scripts succeeded." in disk.log


def test_a_script_finds_the_promised_environment_and_files(disk: NodeDisk) -> None:
    disk.script('env > "$STEWARD_SETUP_TOKEN.env"; cp "$SAGEMAKER_RESOURCE_CONFIG_PATH" seen.json\n')
    assert disk.run(disk.order()).state is SetupState.SUCCEEDED
    env = dict(line.split("=", 1) for line in (disk.root / "scripts/t1.env").read_text().splitlines() if "=" in line)
    assert env["SAGEMAKER_RESOURCE_CONFIG_PATH"] == str(disk.here.config_dir / "resource_config.json")
    told = {name: value for name, value in env.items() if name.startswith("STEWARD_")}
    assert (
        told.items()
        >= {
            "STEWARD_NODE": "n1",
            "STEWARD_GROUP": "worker",
            "STEWARD_ROLE": "Compute",
            "STEWARD_CLUSTER": "lab",
            "STEWARD_INSTANCE_ID": "i-1",
            "STEWARD_FEATURES": "steward,worker",
            "STEWARD_HEAD": "127.0.0.1",
            "STEWARD_SETUP_TOKEN": "t1",
        }.items()
    )
    seen = json.loads((disk.root / "scripts/seen.json").read_text())
    assert seen["InstanceGroups"][0]["Instances"][0]["InstanceName"] == "n1"
    assert seen["SlurmConfig"]["PrimaryControllerIp"] == "127.0.0.1", "the head's, where nobody knows better"


def test_the_scripts_own_parameters_are_completed_and_kept(disk: NodeDisk) -> None:
    disk.script("true\n")
    disk.script('{"fsx_dns_name": "fs-1", "version": "0"}', "provisioning_parameters.json")
    order = disk.order()
    assert disk.run(order).state is SetupState.SUCCEEDED
    merged = json.loads((disk.here.config_dir / "provisioning_parameters.json").read_text())
    assert merged == {"fsx_dns_name": "fs-1", "version": "0"}
    assert (
        disk.root / "scripts/provisioning_parameters.json"
    ).read_text() == '{"fsx_dns_name": "fs-1", "version": "0"}'


def test_a_script_that_fails_is_told_with_step_status_and_its_last_words(disk: NodeDisk) -> None:
    disk.script("for n in $(seq 30); do echo line $n; done; echo no disk >&2; exit 3\n")
    disk.script("touch ran\n", "late.sh")
    report = disk.run(disk.order(hooks=("on_create.sh", "late.sh")))
    assert (report.state, report.step, report.exit_status) == (SetupState.FAILED, "OnCreate", 3)
    assert report.why == "on_create.sh ended with status 3"
    assert report.lines[-2:] == ("line 30", "no disk")
    assert len(report.lines) == 20
    assert not (disk.root / "scripts/ran").exists()


def test_when_time_is_over_nothing_of_the_script_is_left(disk: NodeDisk) -> None:
    """Not the child in the background, nor the one that made itself a session of its own."""
    disk.script(f"{SLEEP} & setsid {SLEEP} & {SLEEP}\n")
    disk.script("true\n", "late.sh")
    for limit_s in LIMITS_S:
        report = disk.run(disk.order(f"t{limit_s:g}", hooks=("on_create.sh", "late.sh"), limit_s=limit_s))
        if report.step == "OnCreate":
            break
    assert (report.state, report.step) == (SetupState.FAILED, "OnCreate")
    assert report.why == f"execution timed out after {limit_s:g} s"
    until("they are gone", lambda: not sleepers())


def sleepers() -> set[int]:
    """Processes of the test above; other tests sleep for other lengths."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                command = (Path("/proc") / entry / "cmdline").read_bytes()
            except OSError:
                continue
            if command.split(b"\0")[:2] == SLEEP.encode().split():
                found.add(int(entry))
    return found


def test_a_daemon_that_a_script_starts_lives_on_and_may_write(disk: NodeDisk) -> None:
    disk.script("(while true; do echo still here; sleep 0.05; done) & echo $! > pid\n")
    assert disk.run(disk.order()).state is SetupState.SUCCEEDED
    pid = int((disk.root / "scripts/pid").read_text())
    said = scripts_log(disk.here.log)
    size = said.stat().st_size
    try:
        until("it goes on writing", lambda: said.stat().st_size > size)
        seen = look(pid)
        assert seen is not None
        assert not seen.dead
    finally:
        os.kill(pid, signal.SIGKILL)


def test_endless_output_is_bounded_on_the_node_and_for_the_head(disk: NodeDisk) -> None:
    disk.script("head -c 90000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 1\n")
    report = disk.run(disk.order())
    assert report.lines[-1] == "the end"
    assert all(len(line) <= 200 for line in report.lines)
    assert disk.here.log.stat().st_size <= MAX_NODE_LOG + 1000
    assert scripts_log(disk.here.log).stat().st_size <= MAX_NODE_LOG
    sent = SetupDir(disk.root, "t1").output.read_text()
    assert len(sent) <= MAX_LOG
    assert sent.endswith("[the rest is in the log on the node]\n")


def test_hostile_output_is_harmless_for_the_head(disk: NodeDisk) -> None:
    disk.script(r"""printf '\033]0;owned\007 caf\xc3\xa9\r\n\x00\xff'; exit 1""" + "\n")
    report = disk.run(disk.order())
    assert report.lines[-2:] == ("?]0;owned? caf??", "?")
    assert "".join(SetupDir(disk.root, "t1").output.read_text().split("\n")).isprintable()


def test_scripts_of_another_digest_are_not_run(disk: NodeDisk) -> None:
    disk.script("touch ran\n")
    report = disk.run(disk.order(sha256="0" * 64))
    assert (report.state, report.step) == (SetupState.FAILED, "checksum")
    assert "sha256" in report.why
    assert not (disk.root / "scripts/ran").exists()


def test_scripts_of_the_told_digest_are_run(disk: NodeDisk) -> None:
    disk.script("true\n")
    assert disk.run(disk.order(sha256=digest(disk.source).upper())).state is SetupState.SUCCEEDED


@pytest.mark.parametrize("name", ["../evil.sh", "/bin/true", "sub/../../evil.sh"])
def test_a_name_that_leads_out_of_the_folder_is_not_run(disk: NodeDisk, name: str) -> None:
    disk.script("true\n")
    (disk.home / "setup").mkdir()
    (disk.home / "setup/evil.sh").write_text(f"touch {disk.home}/ran\n")
    report = disk.run(disk.order(hooks=(name, "")))
    assert report.state is SetupState.FAILED
    assert "is not a path inside" in report.why
    assert not (disk.home / "ran").exists()


def test_a_script_that_is_not_there_is_told(disk: NodeDisk) -> None:
    disk.script("true\n")
    report = disk.run(disk.order(hooks=("other.sh", "")))
    assert (report.state, report.why) == (SetupState.FAILED, "other.sh is not among the scripts")


def test_the_same_setup_started_again_runs_nothing(disk: NodeDisk) -> None:
    disk.script(f"echo once >> {disk.home}/trace\n")
    disk.run(disk.order())
    disk.start(SetupDir(disk.root, "t1"))
    assert (disk.home / "trace").read_text() == "once\n"


def test_a_second_setup_finds_only_its_own_files(disk: NodeDisk) -> None:
    disk.script("touch left-behind\n")
    disk.run(disk.order("t1"))
    disk.script("test ! -e left-behind\n")
    assert disk.run(disk.order("t2")).state is SetupState.SUCCEEDED


def test_a_node_log_that_cannot_be_written_is_told_with_its_remedy(disk: NodeDisk) -> None:
    disk.script("true\n")
    disk.here.log.mkdir(parents=True)
    report = disk.run(disk.order())
    assert report.state is SetupState.FAILED
    assert "agent.setup_log" in report.why


def test_a_runner_that_is_told_to_stop_ends_its_script_and_says_so(disk: NodeDisk) -> None:
    disk.script(f"echo $$ > {disk.home}/pid.new; mv {disk.home}/pid.new {disk.home}/pid; exec sleep 1000\n")
    setup = disk.begin(disk.order())
    until("it runs", lambda: (disk.home / "pid").exists() and setup.script() is not None)
    script = look(int((disk.home / "pid").read_text()))
    assert script is not None
    os.kill(script.parent, signal.SIGTERM)
    until("it is over", lambda: (report := setup.report()) is not None and report.state is SetupState.FAILED)
    report = setup.report()
    assert report is not None
    assert report.why == "the runner was told to stop"
    assert look(script.process.pid) is None


def test_a_script_with_windows_line_ends_is_called_that(tmp_path: Path) -> None:
    """Linux says that a file is not there, and means the interpreter with the return behind its name."""
    path = tmp_path / "on_create.sh"
    path.write_bytes(b"#!/bin/bash\r\necho hi\r\n")
    with pytest.raises(Permanent, match=r"on_create\.sh has Windows line ends \(CRLF\)"):
        _argv(path)
    path.write_bytes(b"#!/bin/bash\necho hi\n")
    assert _argv(path) == [str(path)]


def test_a_source_that_is_not_there_yet_is_told_while_it_is_tried_again(disk: NodeDisk) -> None:
    setup = disk.begin(disk.order())

    def why() -> str:
        report = setup.report()
        return report.why if report is not None and report.state is SetupState.RUNNING else ""

    until("it says what it waits for", lambda: "there is neither a folder nor a file; again in" in why())
    disk.script("true\n")
    until("it is over", lambda: (report := setup.report()) is not None and report.state is SetupState.SUCCEEDED)
    report = setup.report()
    assert report is not None
    assert report.why == ""
