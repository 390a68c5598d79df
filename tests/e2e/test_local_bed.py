"""What only the local bed promises: processes of this machine that leave nothing behind."""

import getpass
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from steward.adapters import proc
from steward.model.ids import NodeName
from steward_bed.bed import Bed, BedError, BedSpec
from steward_bed.beds import make
from steward_bed.faults import FaultKind, fault
from steward_bed.providers.local import LocalProvider
from steward_bed.wait import wait_until

MakeBed = Callable[..., Bed]


@pytest.fixture
def up() -> Iterator[MakeBed]:
    """Brings up plain local beds of two nodes, each taken down at the end."""
    with ExitStack() as at_end:

        def bring_up(slurm: str = "", spares: int = 0, accounting: bool = False) -> Bed:
            place = Path(tempfile.mkdtemp(prefix="steward-e2e-", dir="/tmp"))
            spec = BedSpec(dir=place, nodes=2, spares=spares, slurm=slurm, steward=False, accounting=accounting)
            bed = make(spec)
            at_end.callback(bed.down)
            bed.up(print)
            return bed

        yield bring_up


def users_of(directory: Path) -> list[str]:
    """Command lines and open files of processes that still have to do with a directory."""
    found = []
    for seen in proc.all_processes():
        try:
            words = Path(f"/proc/{seen.process.pid}/cmdline").read_bytes().decode(errors="replace")
            files = [os.readlink(entry) for entry in Path(f"/proc/{seen.process.pid}/fd").iterdir()]
        except OSError:
            continue
        found += [text for text in (words, *files) if str(directory) in text]
    return found


def test_down_leaves_no_process_and_no_file(up: MakeBed) -> None:
    bed = up()
    bed.run(["sbatch", "-N2", "--output=/dev/null", "--wrap", f"srun sleep 1000 # {bed.spec.dir}"])
    bed.inject(fault(FaultKind.FREEZE_NODE, "n2"))
    bed.down()
    assert users_of(bed.spec.dir) == []
    assert not bed.spec.dir.exists()
    bed.down()


def test_down_finds_daemons_whose_machine_lost_its_first_process(up: MakeBed) -> None:
    bed = up()
    machine = LocalProvider(bed.spec.dir).machine(NodeName("n1"))
    assert machine is not None
    proc.send(machine.init, signal.SIGKILL)
    bed.down()
    assert users_of(bed.spec.dir) == []


def test_a_bed_with_accounting_enforces_limits_and_goes_away_whole(up: MakeBed) -> None:
    bed = up(accounting=True)
    assert set(bed.status().services) == {"munged", "mariadbd", "slurmdbd", "slurmctld"}
    recorded = bed.run(["sacctmgr", "-nP", "show", "cluster", "format=Cluster,ControlPort"]).text.strip()
    assert recorded == f"bed{recorded.partition('|')[2]}|{recorded.partition('|')[2]}"
    bed.run(["sacctmgr", "-i", "add", "qos", "none", "GrpTRES=gres/gpu=0"])
    bed.run(["sacctmgr", "-i", "modify", "user", getpass.getuser(), "set", "qos+=none"])
    held = bed.run(["sbatch", "--parsable", "--qos=none", "--gres=gpu:1", "--wrap", "sleep 1000"]).text.strip()
    free = bed.run(["sbatch", "--parsable", "--gres=gpu:1", "--wrap", "sleep 1000"]).text.strip()
    wait_until("one job runs", lambda: reason(bed, free) == "None", 30)
    wait_until("one job waits for its limit", lambda: reason(bed, held) == "QOSGrpGRES", 30)
    assert not list(Path().glob("slurm-*.out")), "a job's output belongs into the bed's shared folder"
    bed.down()
    assert users_of(bed.spec.dir) == []
    assert not bed.spec.dir.exists()


def reason(bed: Bed, job: str) -> str:
    return bed.run(["squeue", "-h", "-j", job, "-o", "%r"]).text.strip()


def test_two_beds_side_by_side_do_not_see_each_other(up: MakeBed) -> None:
    one, two = up(), up()
    one.inject(fault(FaultKind.KILL_NODE, "n1"))
    assert not one.status().healthy
    assert two.status().healthy
    assert two.run(["srun", "-N2", "-n2", "printenv", "SLURMD_NODENAME"]).text.split() in (["n1", "n2"], ["n2", "n1"])


def test_another_slurm_than_the_installed_one_is_refused_with_the_remedy(up: MakeBed) -> None:
    with pytest.raises(BedError, match=r"Slurm 19\.05 was asked for, .* use --backend docker for others"):
        up(slurm="19.05")


def test_cutting_the_network_or_slowing_it_is_refused_with_the_remedy(up: MakeBed) -> None:
    bed = up()
    for kind in (FaultKind.CUT_NODE, FaultKind.SLOW_LINK):
        with pytest.raises(BedError, match=f"^{kind.value} .* use --backend docker"):
            bed.inject(fault(kind, "n1"))


def test_spares_are_nodes_of_a_partition_of_their_own(up: MakeBed) -> None:
    bed = up(spares=1)
    assert bed.run(["sinfo", "-h", "-p", "spare", "-o", "%N"]).text.strip() == "s1"
    assert bed.run(["sinfo", "-h", "-p", "main", "-o", "%N"]).text.strip() == "n[1-2]"
