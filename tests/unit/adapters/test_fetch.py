"""Lifecycle scripts are fetched whole, from where they are kept, into their folder and nowhere else."""

import hashlib
import os
import time
import zipfile
from pathlib import Path

import pytest

from steward.adapters.fetch.file import fetch_file
from steward.adapters.fetch.folder import FetchBudget, TimeOver, digest, inside, unpack
from steward.lifecycle.source import fetch_source
from steward.ports import Permanent
from tests.fakes.archives import budget, files, tar

pytestmark = pytest.mark.timeout(300)


# Archives and folders


def test_a_tar_is_unpacked_with_its_modes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar(("on_create.sh", b"one"), ("steps/10.sh", b"two")))
    unpack(tmp_path / "a", tmp_path / "out", budget(), single="a")
    assert files(tmp_path / "out") == {"on_create.sh": "one", "steps/10.sh": "two"}
    assert os.access(tmp_path / "out/on_create.sh", os.X_OK)


def test_a_zip_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a", "w") as archive:
        archive.writestr("on_create.sh", "one")
        archive.writestr("steps/10.sh", "two")
    unpack(tmp_path / "a", tmp_path / "out", budget(), single="a")
    assert files(tmp_path / "out") == {"on_create.sh": "one", "steps/10.sh": "two"}


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_an_archive_cannot_write_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_bytes(tar((name, b"evil")))
    with pytest.raises(Permanent, match="is not a path inside"):
        unpack(tmp_path / "a", tmp_path / "x/out", budget(), single="a")
    assert not list(tmp_path.rglob("evil"))


def test_a_link_in_an_archive_refuses_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar(links=(("here", "/etc"),)))
    with pytest.raises(Permanent, match="is a link"):
        unpack(tmp_path / "a", tmp_path / "out", budget(), single="a")


def test_a_broken_archive_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar(("on_create.sh", b"one" * 9999))[:-40])
    with pytest.raises(Permanent, match="cannot be unpacked"):
        unpack(tmp_path / "a", tmp_path / "out", budget(), single="a")


def test_what_is_larger_than_allowed_is_refused_before_it_fills_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar(("big", b"\0" * 5_000_000)))
    with pytest.raises(Permanent, match="larger"):
        unpack(tmp_path / "a", tmp_path / "out", budget(bytes_left=100_000), single="a")
    assert (tmp_path / "out/big").stat().st_size <= 100_000


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(tar(*((str(number), b"") for number in range(5))))
    with pytest.raises(Permanent, match="more files"):
        unpack(tmp_path / "a", tmp_path / "out", budget(files_left=4), single="a")


def test_a_fetch_ends_at_the_deadline(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a").write_text("a")
    with pytest.raises(TimeOver):
        fetch_file((tmp_path / "src").as_uri(), tmp_path / "out", FetchBudget(deadline=time.monotonic()))


def test_links_that_leave_the_folder_are_refused_and_others_followed(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "a").write_text("a")
    (source / "b").symlink_to("a")
    fetch_file(source.as_uri(), tmp_path / "out", budget())
    assert files(tmp_path / "out") == {"a": "a", "b": "a"}
    (source / "c").symlink_to("/etc/passwd")
    with pytest.raises(Permanent, match="is not a file inside the folder"):
        fetch_file(source.as_uri(), tmp_path / "out", budget())


def test_a_folder_that_is_not_mounted_yet_is_waited_for(tmp_path: Path) -> None:
    source, waits = tmp_path / "src", list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            source.mkdir()
            (source / "a").write_text("a")

    fetch_source(source.as_uri(), tmp_path / "out", budget, told=lambda line: None, sleep=sleep)
    assert waits == [1.0, 2.0, 4.0]
    assert files(tmp_path / "out") == {"a": "a"}


def test_an_unknown_kind_of_source_is_told_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="file://, https://, s3://"):
        fetch_source("http://x/y", tmp_path / "out", budget, told=lambda line: None)


def test_the_digest_is_that_of_names_sizes_and_contents_alone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "steps").mkdir(parents=True)
        (tmp_path / name / "b.sh").write_text("b")
        (tmp_path / name / "steps/a.sh").write_text("a")
    (tmp_path / "two/b.sh").chmod(0o700)
    assert digest(tmp_path / "one") == digest(tmp_path / "two")
    known = b"b.sh\x001\x00bsteps/a.sh\x001\x00a"
    assert digest(tmp_path / "one") == hashlib.sha256(known).hexdigest()
    (tmp_path / "two/b.sh").rename(tmp_path / "two/c.sh")
    assert digest(tmp_path / "one") != digest(tmp_path / "two")


def test_an_empty_name_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(Permanent):
        inside(tmp_path, "")
