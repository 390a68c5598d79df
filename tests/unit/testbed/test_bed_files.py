"""The files a local bed is made of."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from steward.adapters.process import run
from steward.agent.config import load as load_agent_config
from steward.model.instance import SPARES
from steward.model.settings import parse
from steward_bed.bed import Backend, BedError, BedSpec
from steward_bed.beds import make
from steward_bed.faults import FaultKind
from steward_bed.file_faults import (
    CHECK,
    break_scontrol,
    how_broken,
    mend_scontrol,
    remove_failing_check,
    write_failing_check,
)
from steward_bed.layout import Layout
from steward_bed.local_setup import Manifest, free_ports, load
from steward_bed.slurm_conf import silent_nodes
from steward_bed.steward_toml import local_toml
from tests.fakes.until import FACT_S


def spec(tmp_path: Path, **settings: dict[str, object]) -> BedSpec:
    return BedSpec(dir=tmp_path, nodes=3, spares=1, settings=settings)


def test_the_agent_reads_its_part_of_the_beds_steward_toml(tmp_path: Path) -> None:
    file = tmp_path / "steward.toml"
    file.write_text(local_toml(Layout(root=tmp_path), spec(tmp_path), listen=7000, http=7001, users=7002))
    own = load_agent_config(file, {}).for_node("n2").agent
    assert own.head == "127.0.0.1:7000"
    assert own.socket == tmp_path / "run" / "agent-n2.sock"
    assert own.boot_id_file == tmp_path / "nodes" / "n2" / "boot_id"


def test_the_head_accepts_the_beds_steward_toml(tmp_path: Path) -> None:
    text = local_toml(Layout(root=tmp_path), spec(tmp_path), listen=7000, http=7001, users=7002)
    settings = parse(text, source="bed", env={})
    assert set(settings.slots()) == {"n1", "n2", "n3", "s1"}


def test_a_setting_given_to_the_bed_wins(tmp_path: Path) -> None:
    text = local_toml(
        Layout(root=tmp_path), spec(tmp_path, repair={"mode": "report"}), listen=7000, http=7001, users=7002
    )
    repair = tomllib.loads(text)["repair"]
    assert repair["mode"] == "report"
    assert "retry_s" in repair


def test_a_setting_may_be_a_list_of_tables(tmp_path: Path) -> None:
    resume = {"max_resumes": 3, "default": [{"partition": "low", "mode": "any:1"}, {"mode": "1"}]}
    text = local_toml(Layout(root=tmp_path), spec(tmp_path, resume=resume), listen=7000, http=7001, users=7002)
    assert tomllib.loads(text)["resume"] == resume
    assert [group["name"] for group in tomllib.loads(text)["groups"]] == ["main", "spare"]


def test_nodes_and_spares_are_groups_of_their_own(tmp_path: Path) -> None:
    text = local_toml(Layout(root=tmp_path), spec(tmp_path), listen=7000, http=7001, users=7002)
    groups = {group["name"]: group["nodes"] for group in tomllib.loads(text)["groups"]}
    assert groups == {"main": "n1,n2,n3", "spare": "s1"}


def test_fixed_machines_have_spares_in_no_group_and_a_power_command(tmp_path: Path) -> None:
    fixed = BedSpec(dir=tmp_path, nodes=3, spares=1, fixed=True)
    settings = parse(local_toml(Layout(root=tmp_path), fixed, listen=7000, http=7001, users=7002), source="bed", env={})
    assert settings.desired().spares == {"s1"}
    assert {slot.group for slot in settings.slots().values()} == {"main", SPARES}
    assert settings.provider.static is not None
    assert settings.provider.static.reboot == (str(tmp_path / "etc" / "node-power"), "cycle", "%n")


def test_fixed_machines_of_containers_are_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(BedError, match="use --backend local"):
        make(BedSpec(dir=tmp_path, backend=Backend.DOCKER, spares=1, fixed=True))


def test_a_later_command_reads_the_bed_as_it_was_asked_for(tmp_path: Path) -> None:
    layout = Layout(root=tmp_path)
    told = Manifest(spec=spec(tmp_path), slurm="22.05.8", slurmctld=1, listen=2, http=3)
    told.save(layout)
    assert load(layout) == told


def test_free_ports_are_as_many_as_asked_for_and_distinct() -> None:
    assert len(set(free_ports(50))) == 50


_ASKS = """import sys; from steward_bed.local_setup import free_ports
print(*free_ports(3, range(9300, 9400)), flush=True); sys.stdin.read()"""


def test_a_port_is_given_once_while_who_got_it_lives_though_nobody_listens_there_yet() -> None:
    asks = (sys.executable, "-c", _ASKS)
    with subprocess.Popen(asks, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = [int(word) for word in other.stdout.readline().split()]
        assert len(theirs) == 3
        for port in theirs:
            with pytest.raises(BedError, match="no 1 free ports between"):
                free_ports(1, [port])
        other.communicate("")
    assert [free_ports(1, [port]) for port in theirs] == [[port] for port in theirs]
    with pytest.raises(BedError, match="no 1 free ports between"):
        free_ports(1, theirs[:1])


@pytest.mark.parametrize("text", ["it's $(touch trap) `touch trap`", 'quote " and \\n', "two\nlines"])
def test_a_failing_check_says_any_text_as_it_is(tmp_path: Path, text: str) -> None:
    directory = tmp_path / "checks.d"
    directory.mkdir()
    write_failing_check(directory, text)
    said = run([str(directory / CHECK)], timeout_s=FACT_S)
    assert said.text == f"HEALTH_CHECK_RESULT:bed:Failed:replace:{text}\n"
    assert not Path("trap").exists()
    remove_failing_check(directory)
    assert not list(directory.iterdir())


def test_a_broken_scontrol_breaks_the_reading_commands_too_until_it_is_mended(tmp_path: Path) -> None:
    assert how_broken(tmp_path) is None
    break_scontrol(tmp_path, FaultKind.FAIL_SCONTROL)
    assert how_broken(tmp_path) is FaultKind.FAIL_SCONTROL
    for command in ("scontrol", "sinfo", "squeue"):
        done = run([str(tmp_path / command), "show", "nodes"], timeout_s=FACT_S, check=False)
        assert done.returncode == 1
        assert "Unable to contact slurm controller" in done.error_text
    mend_scontrol(tmp_path)
    assert how_broken(tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_nodes_without_a_machine_are_future_ones_of_a_partition_of_their_own(tmp_path: Path) -> None:
    first, second = silent_nodes(BedSpec(dir=tmp_path, silent=300))
    assert first.startswith("NodeName=far[1-300] ")
    assert first.endswith("State=FUTURE")
    assert second.startswith("PartitionName=far Nodes=far[1-300] Default=NO ")
    assert silent_nodes(BedSpec(dir=tmp_path)) == []
