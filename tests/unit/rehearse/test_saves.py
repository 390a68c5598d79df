"""Files that a job writes."""

import json
import zipfile
from pathlib import Path

import pytest

from steward.rehearse.saves import FolderWatch, SaveSeen, named_folders, torn
from steward_bed.wait import wait_until


def watching(folder: Path) -> FolderWatch:
    watch = FolderWatch([folder])
    watch.begin()
    return watch


def seen(watch: FolderWatch) -> SaveSeen:
    found: list[SaveSeen] = []

    def look() -> bool:
        save = watch.look()
        found.extend([save] if save else [])
        return bool(found)

    wait_until("a save has come to its end", look, 5.0)
    return found[0]


def test_a_new_file_is_a_save_once_it_rests(tmp_path: Path) -> None:
    watch = watching(tmp_path)
    (tmp_path / "ckpt").mkdir()
    (tmp_path / "ckpt" / "step-1.pt").write_bytes(b"x" * 100)
    assert watch.look() is None
    assert watch.writing_since is not None
    assert seen(watch).path == tmp_path / "ckpt" / "step-1.pt"
    assert watch.writing_since is None


def test_a_file_that_is_written_anew_is_a_save_too(tmp_path: Path) -> None:
    (tmp_path / "last.json").write_text("{}")
    watch = watching(tmp_path)
    (tmp_path / "last.json").write_text('{"step": 1}')
    assert seen(watch).path == tmp_path / "last.json"


@pytest.mark.parametrize(
    "name", ["train.log", "slurm-7.out", "progress.jsonl", "events.out.tfevents.17", "a.py", "x.csv"]
)
def test_what_a_training_writes_besides_is_no_save(tmp_path: Path, name: str) -> None:
    watch = watching(tmp_path)
    (tmp_path / name).write_text("step 1")
    watch.look()
    assert watch.writing_since is None


def test_a_draft_is_being_written_and_is_no_save(tmp_path: Path) -> None:
    watch = watching(tmp_path)
    (tmp_path / "step-1.tmp").write_bytes(b"x")
    watch.look()
    assert watch.writing_since is not None
    wait_until("the draft rests", lambda: watch.look() is None and watch.writing_since is None, 5.0)


def test_links_that_lead_round_in_a_circle_are_followed_once(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to(tmp_path)
    watch = watching(tmp_path)
    (tmp_path / "step-1.pt").write_bytes(b"x")
    assert seen(watch).path.name == "step-1.pt"


def test_half_files_are_torn_and_whole_ones_and_drafts_are_not(tmp_path: Path) -> None:
    whole = tmp_path / "step-1.pt"
    with zipfile.ZipFile(whole, "w") as file:
        file.writestr("data", b"x" * 1000)
    half, draft = tmp_path / "step-2.pt", tmp_path / "step-3.tmp.pt"
    for each in (half, draft):
        each.write_bytes(whole.read_bytes()[:300])
    text, cut = tmp_path / "rank0.json", tmp_path / "rank1.json"
    text.write_text(json.dumps({"step": 3}))
    cut.write_text('{"step": 3, "wei')
    assert torn([whole, half, draft, text, cut, tmp_path / "gone.pt"]) == [half, cut]


def test_a_script_names_folders_by_variables_and_whole_paths_and_not_the_systems(tmp_path: Path) -> None:
    (tmp_path / "ckpt").mkdir()
    script = f"python train.py --out $SCRATCH/ckpt --log {tmp_path}/x.log --bin /usr/bin/python3 --all / --tmp /tmp"
    assert named_folders(script, {"SCRATCH": str(tmp_path), "HOME": "/nowhere"}) == [tmp_path, tmp_path / "ckpt"]
