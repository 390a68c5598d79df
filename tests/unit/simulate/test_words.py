"""What is typed: a wrong word gets one line that says what, where and what to do."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from steward.cli import main
from steward.simulate.numbers import WorldNumbers, table
from steward.simulate.options import axis_of
from steward.simulate.picture import picture_of, study_in
from steward.simulate.traces import read_trace

ROOT = Path(__file__).resolve().parents[3]


def told(*words: str) -> str:
    return CliRunner().invoke(main, ["simulate", *words]).output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give one source of faults: --llama3, --rsc1, --rate or --trace"),
        (("--llama3", "--rate", "3"), "give one source of faults"),
        (("--rate", "3", "--jobs", "4"), "--jobs 4: give COUNTxNODES"),
        (("--rate", "3", "--jobs", "9x4000"), "--jobs 9x4000: 36,000 nodes are more than 4,096"),
        (("--rate", "3", "--interval", "soon"), "--interval soon: give a time such as 90s, 5m, 1.5h or 54d"),
        (("--rate", "3", "--interval", "0s"), "--interval 0s: give 1s to 7d"),
        (("--rate", "3", "--assume", "reboot=3"), "reboot is no number of the simulation"),
        (("--rate", "3", "--assume", "reboot_cures=3"), "--assume reboot_cures=3: reboot_cures=3 is not possible"),
        (("--rate", "3", "--sweep", "speed=1..2"), "--sweep speed=1..2: give one of spares, interval, save, start"),
        (("--rate", "3", "--sweep", "spares=8..2"), "--sweep spares=8..2: 8 is not below 2"),
        (("--rate", "3", "spares=0..2"), "spares=0..2: ranges stand after --sweep"),
        (("--rate", "3", "--set", "repair"), "give TABLE.KEY=VALUE"),
        (("--rate", "3", "--set", "repair.mode=never"), "repair.mode"),
        (("--rate", "3", "--set", "repair.speed=1"), "repair.speed"),
        (("--rate", "3", "--site", "/nowhere.toml"), "/nowhere.toml"),
        (("--rate", "3", "--auto-resume", "yes"), "--auto-resume='yes'"),
        (("--trace", "/nowhere.csv"), "/nowhere.csv: cannot be read"),
    ],
)
def test_a_wrong_word_is_told_in_one_line(words: tuple[str, ...], said: str) -> None:
    output = told(*words)
    assert said in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: the first line must be hours,kind,node"),
        ("hours,kind,node\nsoon,gpu,1", "line 2: 'soon' is no number of hours"),
        ("hours,kind,node\n1,cpu,1", "line 2: 'cpu' is no kind of fault"),
        ("hours,kind,node\n1,gpu,9", "line 2: node '9' is not a number from 1 to 8"),
        ("hours,kind,node\n1", "line 2: 1 fields"),
        ("hours,kind,node\n-1,gpu,1", "line 2: -1 hours are not between"),
    ],
)
def test_a_wrong_line_of_a_trace_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"^faults\.csv, line") as error:
        read_trace(text, "faults.csv", nodes=8)
    assert said in str(error.value)


def test_a_trace_is_simulated(tmp_path: Path) -> None:
    trace = tmp_path / "faults.csv"
    trace.write_text("hours,kind,node\n2.5,gpu,1\n1.0,machine,4\n")
    shown = told("--trace", str(trace), "--jobs", "1x4", "--spares", "2", "--days", "6h", "--runs", "1")
    assert "2 faults of the trace" in shown
    assert "a GPU fails (Xid 79)" in shown


def test_a_setting_changes_the_result_and_both_ranges_of_a_sweep_are_tried() -> None:
    few = ("--rate", "3000", "--jobs", "1x4", "--days", "1h", "--runs", "2")
    assert told(*few, "--spares", "0") != told(*few, "--spares", "0", "--set", "repair.mode=report")
    shown = told(*few, "--sweep", "spares=0..1", "interval=1m,5m")
    assert "ETTR by spares (best: " in shown
    assert "ETTR by interval (best: " in shown


def test_the_ranges_of_a_sweep() -> None:
    assert axis_of("spares=0..9").values == (0.0, 1.0, 2.0, 4.0, 8.0, 9.0)
    assert axis_of("interval=5m..60m").values[0] == 300.0
    assert axis_of("interval=5m..60m").values[-1] == 3600.0
    assert axis_of("interval=90s,2m").values == (90.0, 120.0)


def test_each_number_of_the_world_is_in_the_page_with_its_source() -> None:
    page = (ROOT / "docs/simulate.md").read_text()
    assert table() in page, "run: python -m steward.simulate.numbers"
    assert all(source for *_, source in WorldNumbers().rows())


def test_the_picture_of_the_page_is_drawn_from_the_study_in_it() -> None:
    picture = (ROOT / "docs/simulate.svg").read_text()
    found = study_in(picture)
    assert picture_of(found) == picture, "run: make simulate"
    assert (found["source"], found["nodes"]) == ("Llama 3, 54 days", 2064)
    assert found["ways"]["Steward"]["ettr"]["mean"] >= 0.97
    assert found["ways"]["Steward"]["ettr"]["mean"] == pytest.approx(found["formula"], rel=0.01)
