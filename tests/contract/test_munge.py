"""What every MungePort does: the fake, and libmunge with a munged of our own."""

import itertools
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from steward.adapters.munge import Munge
from steward.ports import MungePort, Permanent, Retryable
from tests.fakes.munge import FakeMunge, FakeMunged

_UP_S = 10.0


@dataclass
class Realm:
    """Two processes of one cluster, one of another, and one whose munged is away."""

    here: MungePort
    there: MungePort
    stranger: MungePort
    alone: MungePort


def _start_munged(folder: Path) -> "subprocess.Popen[bytes]":
    folder.mkdir(mode=0o755)
    key = folder / "key"
    key.write_bytes(secrets.token_bytes(64))
    key.chmod(0o400)
    names = {"socket": "sock", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    options = [f"--{name}={folder / file}" for name, file in names.items()]
    munged = subprocess.Popen([shutil.which("munged") or "munged", "--foreground", *options], stderr=subprocess.DEVNULL)
    end = time.monotonic() + _UP_S
    while not (folder / "sock").exists():
        assert time.monotonic() < end, "munged does not come up"
        time.sleep(0.02)
    return munged


@pytest.fixture(scope="module")
def sockets() -> Iterator[tuple[Path, Path]]:
    if shutil.which("munged") is None:
        pytest.skip("munged is not installed")
    with tempfile.TemporaryDirectory(prefix="steward-munge-") as name:
        os.chmod(name, 0o755)
        running = [_start_munged(Path(name) / which) for which in ("ours", "other")]
        yield Path(name) / "ours/sock", Path(name) / "other/sock"
        for munged in running:
            munged.terminate()
            munged.wait(10)


@pytest.fixture(params=["fake", "libmunge"])
def realm(request: pytest.FixtureRequest, tmp_path: Path) -> Realm:
    if request.param == "fake":
        ours, uid = FakeMunged(), os.getuid()
        strange, away = FakeMunge(FakeMunged(numbers=itertools.count(100)), uid), FakeMunge(FakeMunged(up=False), uid)
        return Realm(here=FakeMunge(ours, uid), there=FakeMunge(ours, uid), stranger=strange, alone=away)
    mine, other = request.getfixturevalue("sockets")
    here, there, stranger = (Munge(str(socket)) for socket in (mine, mine, other))
    return Realm(here=here, there=there, stranger=stranger, alone=Munge(str(tmp_path / "nothing")))


def test_a_credential_tells_who_made_it_and_what_for(realm: Realm) -> None:
    payload = bytes(range(256))
    assert realm.there.decode(realm.here.encode(payload)) == (os.getuid(), payload)


def test_an_empty_payload_is_carried_as_well(realm: Realm) -> None:
    assert realm.there.decode(realm.here.encode(b"")) == (os.getuid(), b"")


def test_a_credential_is_read_once(realm: Realm) -> None:
    credential = realm.here.encode(b"once")
    realm.there.decode(credential)
    with pytest.raises(Permanent):
        realm.there.decode(credential)


@pytest.mark.parametrize("forged", ["", "MUNGE:", "MUNGE:AwQDAAAB:", "nonsense", "MUNGE:\u00fc:"])
def test_what_munged_did_not_make_is_refused(realm: Realm, forged: str) -> None:
    with pytest.raises(Permanent):
        realm.there.decode(forged)


def test_a_credential_of_another_cluster_is_refused(realm: Realm) -> None:
    with pytest.raises(Permanent):
        realm.here.decode(realm.stranger.encode(b"x"))


def test_without_munged_it_may_be_tried_again_later(realm: Realm) -> None:
    with pytest.raises(Retryable, match="is munged running"):
        realm.alone.encode(b"x")
    with pytest.raises(Retryable, match="is munged running"):
        realm.alone.decode("MUNGE:AwQDAAAB:")
