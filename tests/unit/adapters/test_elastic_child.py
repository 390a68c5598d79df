"""What a replica job is submitted with: the user's own words, and then what makes it a replica."""

import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from steward.adapters.node.elastic_child import (
    cgroup_folders,
    replica_env,
    replica_options,
    script_for_replica,
    script_name,
)
from steward.adapters.node.elastic_start import TRIES, listen
from steward.adapters.process import run
from steward.model.ids import JobId
from steward.ports import Retryable
from steward_bed.wait import wait_until
from tests.fakes.until import FACT_S

ASKED = {"nodes": "1", "comment": "steward-elastic:7:r1", "grace": "30", "address": "10.0.0.1:20000", "token": "abc"}
J7 = JobId(7)


def test_what_was_typed_is_kept_and_ours_comes_last() -> None:
    theirs = {"STEWARD_ELASTIC_ARGS": "-N2 --job-name=a%20b --wrap=true --gres=gpu:4 -W", "SLURM_JOB_NAME": "a b"}
    options = replica_options(theirs, J7, ASKED)
    assert options[:3] == ["-N2", "--job-name=a b", "--gres=gpu:4"]
    assert {"--nodes=1", "--job-name=a b.r", "--comment=steward-elastic:7:r1", "--no-requeue"} <= set(options[3:])
    assert {"--dependency=after:7", "--kill-on-invalid-dep=yes", "--signal=TERM@30"} <= set(options[3:])


@pytest.mark.parametrize(
    "words",
    [
        *("--wrap true", "--wrap=true", "--test-only", "--wait", "-W", "--hold", "-H", "--parsable"),
        *("--nodelist=n1", "--nodelist n1", "-w n1", "-wn1", "--nodel=n1", "--nodefile=x", "-F x"),
        *("--begin=now+1", "--begin now+1", "-b now", "-bnow", "--mail-type=ALL", "--mail-type ALL", "--time-min=5"),
    ],
)
def test_words_that_are_about_the_base_alone_are_left_out(words: str) -> None:
    assert replica_options({"STEWARD_ELASTIC_ARGS": words}, J7, ASKED)[0] == "--nodes=1"


@pytest.mark.parametrize(
    "word", ["--nodes=2", "-N2", "--time=5", "--mail-user=a", "--wait-all-nodes=1", "-t5", "-p main"]
)
def test_other_words_are_kept(word: str) -> None:
    assert replica_options({"STEWARD_ELASTIC_ARGS": word}, J7, ASKED)[: len(word.split())] == word.split()


def test_the_scripts_own_lines_lose_what_is_about_the_base_alone_and_nothing_else() -> None:
    script = b"""#!/bin/bash
#SBATCH --nodelist=n1,n2 --gres=gpu:8   # where
#SBATCH --begin now+1hour
#SBATCH -J "a b"
# a comment

#SBATCH --mail-type="ALL
export X=1
#SBATCH --hold
\xff\xfe
"""
    assert script_for_replica(script) == (
        script.replace(b"--nodelist=n1,n2 --gres=gpu:8   # where", b"--gres=gpu:8").replace(
            b"#SBATCH --begin now+1hour", b"#"
        )
    )


def test_each_replica_is_submitted_from_a_file_of_its_own() -> None:
    assert script_name("steward-elastic:7:r1") != script_name("steward-elastic:7:r2")
    with pytest.raises(ValueError, match="names no replica"):
        script_name("steward-elastic:7:../../x")


def test_a_replica_has_as_many_tasks_a_node_as_the_base() -> None:
    theirs = {"SLURM_NTASKS": "8", "SLURM_JOB_NUM_NODES": "2"}
    assert "--ntasks=4" in replica_options(theirs, J7, ASKED)
    assert not any(word.startswith("--ntasks") for word in replica_options({"SLURM_NTASKS": "x"}, J7, ASKED))


@pytest.mark.parametrize(
    ("gpus", "asked"), [("16", "8"), ("l4:16", "l4:8"), ("a100:4,l4:3", "a100:2,l4:2"), ("1", "1")]
)
def test_a_replica_has_its_nodes_part_of_the_gpus_that_the_base_asked_for_in_all(gpus: str, asked: str) -> None:
    theirs = {"STEWARD_ELASTIC_ARGS": f"-N2 -G{gpus}", "SLURM_GPUS": gpus, "SLURM_JOB_NUM_NODES": "2"}
    assert f"--gpus={asked}" in replica_options(theirs, J7, ASKED)[2:]


@pytest.mark.parametrize("gpus", ["", "many", "l4:", "99999999999999999999"])
def test_gpus_that_are_no_number_are_left_as_they_were_typed(gpus: str) -> None:
    theirs = {"SLURM_GPUS": gpus, "SLURM_JOB_NUM_NODES": "2"}
    assert not any(word.startswith("--gpus") for word in replica_options(theirs, J7, ASKED))


@pytest.mark.parametrize("name", ["../../etc/passwd", "$(reboot)", "-x", "a\nb", "\udcff", "x" * 5000])
def test_a_hostile_name_of_a_job_is_one_word(name: str) -> None:
    options = replica_options({"SLURM_JOB_NAME": name}, J7, ASKED)
    assert f"--job-name={name[:200]}.r" in options


def test_time_qos_and_nodes_to_avoid_are_said_where_they_are_asked() -> None:
    more = {"time": "60", "qos": "team-b", "exclude": "n3,n4"}
    assert replica_options({}, J7, {**ASKED, **more})[-3:] == ["--time=60", "--qos=team-b", "--exclude=n3,n4"]


def test_the_bases_own_variables_do_not_reach_a_replica() -> None:
    theirs = {
        "HOME": "/home/a",
        "SLURM_JOB_ID": "7",
        "SLURM_CONF": "/etc/x",
        "STEWARD_ELASTIC": "4",
        "STEWARD_ATTEMPT": "2",
        "STEWARD_AUTO_RESUME": "1",
        "SBATCH_WAIT": "1",
        "_SLURM_SPANK_OPTION_steward_auto_resume": "1",
    }
    assert replica_env(theirs, J7, ASKED) == {
        "PATH": "/bin:/usr/bin",
        "HOME": "/home/a",
        "SLURM_CONF": "/etc/x",
        "STEWARD_ELASTIC": "4",
        "STEWARD_ELASTIC_RUN": "7",
        "STEWARD_ELASTIC_SUBMIT": "1",
        "STEWARD_ELASTIC_ADDRESS": "10.0.0.1:20000",
        "STEWARD_ELASTIC_TOKEN": "abc",
    }


HYBRID = """31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
CONTAINER = "40 31 0:37 /docker/7f /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"


@pytest.mark.parametrize(
    ("theirs", "own", "mounts", "found"),
    [
        ("0::/slurm/job_7", "0::/agent", "30 2 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate", "job_7"),
        ("0::/slurm/job_7", "0::/agent", HYBRID, "unified/slurm/job_7"),
        ("4:cpu,cpuacct:/slurm/job_7", "4:cpu,cpuacct:/", HYBRID, "cpu,cpuacct/slurm/job_7"),
        (
            "1:name=systemd:/docker/7f/slurmd/job_7",
            "1:name=systemd:/docker/7f/agent",
            CONTAINER,
            "systemd/slurmd/job_7",
        ),
    ],
)
def test_the_cgroup_of_a_process_is_found_where_it_is_mounted(theirs: str, own: str, mounts: str, found: str) -> None:
    (folder,) = cgroup_folders(theirs, own, mounts)
    assert str(folder).startswith("/sys/fs/cgroup/")
    assert str(folder).endswith(found)


def test_who_is_in_the_same_cgroups_joins_none_and_one_that_is_not_mounted_is_said() -> None:
    assert cgroup_folders("0::/a", "0::/a", "") == []
    with pytest.raises(ValueError, match="is not mounted here"):
        cgroup_folders("1:name=systemd:/elsewhere/a", "", CONTAINER)


def test_a_coordinator_outlives_the_program_that_starts_it_each_time(tmp_path: Path) -> None:
    """Who starts a program ends the rest of its process group as soon as it is over."""
    body = (
        "import sys; from steward.adapters.node import elastic_child as it; it._leave_starter(); open(sys.argv[1], 'x')"
    )
    files = [tmp_path / str(number) for number in range(20)]
    for file in files:
        run((sys.executable, "-c", body, str(file)), timeout_s=FACT_S)
    wait_until("every one of them lives on", lambda: all(file.exists() for file in files), FACT_S)


class Looked(Sequence[int]):
    """Ports that are counted when they are looked at."""

    def __init__(self, ports: range) -> None:
        self.ports, self.looks = ports, 0

    def __len__(self) -> int:
        return len(self.ports)

    def __getitem__(self, at: int) -> int:  # type: ignore[override]
        self.looks += 1
        return self.ports[at]


def test_who_holds_all_ports_does_not_hold_up_the_agent_that_looks_for_one() -> None:
    """Its loop stands still while it looks, and any user may have it look a hundred times a second."""
    ports = Looked(range(10_000, 10_000 + 4 * TRIES))
    with ExitStack() as held:
        for port in ports.ports:
            one = held.enter_context(socket.socket())
            with suppress(OSError):  # another program has it
                one.bind(("", port))
        with pytest.raises(Retryable, match="no port is free"):
            listen(ports)
    assert ports.looks <= TRIES + 2  # two for the message
    with listen(ports) as found:
        assert found.getsockname()[1] in ports.ports
