"""The agent's senses for the system itself: its clock, munged, slurmd's folder, programs that may be missing."""

import os
import socket
import sys
from pathlib import Path

from steward.adapters.munge import Munge
from steward.adapters.node.probe import LocalProbes, Processes, is_synchronised
from steward.adapters.node.slurm_conf import conf_here, conf_text, spool_dir, tmp_fs
from steward.checks.slurm_node import is_pretended
from steward.model.probe import AskMunge, FindProcess, KernelClock, Raw, ReadFiles, RunOnEach, RunProgram, SpoolUsage


def probes(munge_socket: str = "") -> LocalProbes:
    return LocalProbes(skew_s=lambda: None, munge=lambda: Munge(munge_socket))


def a_program(path: Path, text: str) -> tuple[str, ...]:
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return (str(path),)


def test_the_kernel_says_whether_its_clock_is_held() -> None:
    assert probes().look(KernelClock()) == Raw(synchronised=is_synchronised())


def test_a_munged_that_is_not_there_is_an_answer_and_no_failed_look(tmp_path: Path) -> None:
    raw = probes(str(tmp_path / "none.socket")).look(AskMunge())
    assert (raw.error, raw.returncode) == ("", 1)
    assert "none.socket" in raw.output


def test_a_program_that_may_be_absent_has_no_status_and_says_so() -> None:
    raw = probes().look(RunProgram(argv=("no-such-tool-here", "x"), may_be_absent=True))
    assert raw == Raw(output="no-such-tool-here is not installed")
    assert "cannot start" in probes().look(RunProgram(argv=("no-such-tool-here",))).error


def test_a_program_is_run_on_each_path_that_is_there_and_on_no_more_than_asked(tmp_path: Path) -> None:
    argv = a_program(tmp_path / "tool", "import sys; print(sys.argv[-1][-1]); sys.exit(4)")
    for name in "acb":
        (tmp_path / f"disk-{name}").touch()
    probe = RunOnEach(patterns=(f"{tmp_path}/disk-*",), argv=argv, max_paths=2)
    raw = probes().look(probe)
    assert raw == Raw(returncode=0, files={f"{tmp_path}/disk-a": "a\n", f"{tmp_path}/disk-b": "b\n"})


def test_no_path_or_no_program_brings_nothing(tmp_path: Path) -> None:
    none = RunOnEach(patterns=(f"{tmp_path}/disk-*",), argv=a_program(tmp_path / "tool", "raise SystemExit(1)"))
    assert probes().look(none) == Raw(returncode=0)
    absent = RunOnEach(patterns=(f"{tmp_path}/*",), argv=("no-such-tool-here",))
    assert probes().look(absent) == Raw(output="no-such-tool-here is not installed")


def test_slurmds_folder_is_where_its_slurm_conf_says(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"# SlurmdSpoolDir=/old\nslurmdspooldir = {tmp_path}/%n.%h/spool\n")
    folder = Path(spool_dir(str(conf), "n7"))
    assert folder == tmp_path / f"n7.{socket.gethostname().partition('.')[0]}" / "spool"
    probe = SpoolUsage(node="n7", slurm_conf=str(conf))
    assert probes().look(probe) == Raw()
    folder.mkdir(parents=True)
    assert list(probes().look(probe).disks) == [str(folder)]


def test_a_slurm_conf_that_does_not_say_means_slurms_default(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=x\n")
    assert (spool_dir(str(conf), "n1"), tmp_fs(str(conf), "n1")) == ("/var/spool/slurmd", "/tmp")


def test_a_process_is_looked_for_only_where_the_node_has_what_it_serves(tmp_path: Path) -> None:
    (me,) = [one for one in Processes(Path("/proc")).every() if one.pid == os.getpid()]
    probe = FindProcess(prefix=me.name, where=(f"{tmp_path}/switch*",))
    assert probes().look(probe) == Raw()
    (tmp_path / "switch0").touch()
    fresh = probes()  # an answer is given again for a moment
    assert [one.name.startswith(me.name) for one in fresh.look(probe).processes] == [True], "by prefix: python3, too"


def test_slurm_conf_is_named_only_where_it_is(tmp_path: Path) -> None:
    """Slurm's commands wait for ever for a file that SLURM_CONF names and that is not there (configless)."""
    here = tmp_path / "slurm.conf"
    assert conf_here(here) != str(here)
    here.touch()
    assert conf_here(here) == str(here)


def test_a_slurm_conf_is_read_with_the_files_that_it_includes(tmp_path: Path) -> None:
    conf, parts = tmp_path / "slurm.conf", tmp_path / "conf.d"
    parts.mkdir()
    conf.write_text(f"ClusterName=a\n  include conf.d/daemons.conf # ours\nInclude {parts}/gone.conf\nEnd=1\n")
    (parts / "daemons.conf").write_text(f"SlurmdSpoolDir=/data/%n\nInclude {parts}/pretended.conf\n")
    (parts / "pretended.conf").write_text("#" * 70_000 + "\nSlurmdParameters=config_overrides\n")
    assert spool_dir(str(conf), "n1") == "/data/n1"
    raw = probes().look(ReadFiles(paths=("/proc/loadavg",), slurm_conf=str(conf)))
    assert set(raw.files) == {"/proc/loadavg", str(conf)}
    assert is_pretended(raw.files[str(conf)])
    assert [line for line in conf_text(conf).splitlines() if "=" in line][-1] == "End=1"


def test_files_that_include_each_other_are_read_to_an_end(tmp_path: Path) -> None:
    for name, other in (("slurm.conf", "more.conf"), ("more.conf", "slurm.conf")):
        (tmp_path / name).write_text(f"Include {tmp_path / other}\nTmpFS=/scratch\n")
    assert tmp_fs(str(tmp_path / "slurm.conf"), "n1") == "/scratch"
