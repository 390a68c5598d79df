"""Nothing secret that is given to a head is in what it says: log at debug level, pages, metrics, store, commands."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import requests

from steward.adapters.munge import Munge
from steward.client import Client, HeadError
from steward.model.access import AccessKey, payload
from steward_bed.local_setup import free_ports
from tests.builders.api_paths import reads
from tests.contract.munged import a_munged, is_installed
from tests.fakes.aws_bench import KEY, signed
from tests.fakes.until import FACT_S, until

CANARY = "CANARY-8c1f"
AWS_KEY = AccessKey(id="AKIDCANARYTEST", secret=f"{CANARY}-of-at-least-20-characters", user="platform")
UP_S, ENDS_S = 120.0, 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    folder: Path
    munge: Munge
    url: str

    @property
    def config(self) -> Path:
        return self.folder / "steward.toml"

    @property
    def log(self) -> Path:
        return self.folder / "log"


def free_port() -> int:
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if not is_installed():
        pytest.skip("munged is not installed")
    folder, http = tmp_path_factory.mktemp("secrets"), free_port()
    with a_munged() as munged, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound, and nobody listens: who connects is refused
        (folder / "keys.toml").write_text(f'[keys.{AWS_KEY.id}]\nsecret = "{AWS_KEY.secret}"\nuser = "platform"\n')
        (folder / "keys.toml").chmod(0o600)
        (folder / "hook").write_text(f"http://127.0.0.1:{nobody.getsockname()[1]}/{CANARY}\n")
        (folder / "hook").chmod(0o600)
        (folder / "steward.toml").write_text(settings(folder, munged, http, nobody.getsockname()[1]))
        yield Place(folder=folder, munge=Munge(str(munged)), url=f"http://127.0.0.1:{http}")


def settings(folder: Path, munged: Path, http: int, nobody: int) -> str:
    """One channel of each kind and of each way to fail: nobody listens, no URL at all, a program that refuses."""
    return f"""
[cluster]
name = "canary"
slurm_conf = "{folder}/none.conf"
slurm_user = "root"
munge_socket = "{munged}"
command_timeout_s = 1.0
[head]
listen = "127.0.0.1:{free_port()}"
http = "127.0.0.1:{http}"
state_dir = "{folder}/state"
[api]
keys_file = "{folder}/keys.toml"
[[notify]]
name = "in-the-file"
kind = "webhook"
url = "http://user:{CANARY}@127.0.0.1:{nobody}/{CANARY}?token={CANARY}"
secret = "{CANARY}"
[[notify]]
name = "beside-it"
kind = "webhook"
url_file = "{folder}/hook"
[[notify]]
name = "no-host"
kind = "webhook"
url = "http://{CANARY} {CANARY}:x/"
[[notify]]
name = "mail"
kind = "mail"
to = ["ops@example.org"]
smtp = "127.0.0.1:{nobody}"
[[notify]]
name = "program"
kind = "command"
command = ["/bin/sh", "-c", "echo $SITE_TOKEN >&2; exit 3"]
"""


def environment() -> dict[str, str]:
    """Of a unit whose drop-in has the credentials of a cloud and of the site's own program."""
    names = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "SITE_TOKEN")
    return {**os.environ, **dict.fromkeys(names, CANARY), "PYTHONUNBUFFERED": "1"}


def speak(place: Place) -> list[str]:
    """All that can be asked of a head, and all the ways to be refused; what it answers, and the credentials used."""
    credentials = []

    def prove(carries: bytes) -> str:
        credentials.append(place.munge.encode(carries))
        return credentials[-1]

    client = Client(place.url, prove)
    said = [str(client.test_channels())]
    said += [requests.get(place.url + page, params={"limit": "1000"}, timeout=90).text for page in reads()]
    with pytest.raises(HeadError):
        Client(place.url, lambda carries: credentials[0]).pause("a replay")
    said.append(post(place, "/v1/pause", b"{}", {"Authorization": f"MUNGE {place.munge.encode(CANARY.encode())}"}))
    twice = {"Authorization": f"MUNGE {prove(payload('POST', '/v1/pause', b'{'))}"}
    said += [post(place, "/v1/pause", b"{", twice), post(place, "/v1/pause", b"{", twice)]
    for key in (AWS_KEY, replace(AWS_KEY, secret=f"{CANARY}-but-another-one-here"), replace(KEY, id=CANARY[:6] * 3)):
        said.append(post(place, "/", b"{}", signed("ListClusters", b"{}", key, f"{place.url}/")))
    return [*said, *credentials]


def post(place: Place, path: str, body: bytes, headers: dict[str, str]) -> str:
    return requests.post(place.url + path, data=body, headers=headers, timeout=FACT_S).text


def answers(place: Place) -> bool:
    try:
        return requests.get(f"{place.url}/v1/status", timeout=FACT_S).ok
    except requests.ConnectionError:
        return False


@pytest.fixture(scope="module")
def told(place: Place) -> dict[str, str]:
    """Whatever a head that ran for a while has said, by where."""
    argv = [sys.executable, "-m", "steward.head", "--config", str(place.config), "--log-level", "debug"]
    with place.log.open("wb") as log:
        head = subprocess.Popen(argv, stdout=log, stderr=log, env=environment())
        try:
            until("the head answers", lambda: answers(place), UP_S)
            *said, _first, last = speak(place)
        finally:
            head.send_signal(signal.SIGTERM)
            assert head.wait(ENDS_S) == 0
    stored = b"".join(file.read_bytes() for file in (place.folder / "state").glob("*.db*"))
    return {
        "log": place.log.read_text(),
        "pages": "\n".join(one for one in said if not one.startswith("MUNGE:")),
        "store": stored.decode("latin-1"),
        "a credential": last,
    }


@pytest.mark.parametrize("where", ["log", "pages", "store"])
def test_a_head_that_fails_at_all_it_is_told_to_do_tells_no_secret(told: dict[str, str], where: str) -> None:
    assert len(told[where]) > 500
    assert CANARY not in told[where]
    assert told["a credential"][6:40] not in told[where], "a MUNGE credential"


def test_each_channels_failure_is_told(told: dict[str, str]) -> None:
    """Else the test above would show nothing."""
    for words in (
        "no connection",
        "cannot take a mail now",
        "/bin/sh ended with status 3",
        "its URL is not valid",
    ):
        assert words in told["pages"]
    assert "signature does not match" in told["pages"]


@pytest.mark.parametrize("command", [["show"], ["check"], ["check", "--offline"]], ids=" ".join)
def test_the_settings_are_checked_and_shown_without_secrets(place: Place, command: list[str]) -> None:
    argv = [
        sys.executable,
        "-c",
        "from steward.cli import main; main()",
        "config",
        *command,
        "--config",
        str(place.config),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env=environment())
    assert done.returncode == (1 if command == ["check"] else 0), done.stderr  # there is no slurm.conf
    assert CANARY not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "url",
    [
        f"sqlite://head:{CANARY}@db1/steward",
        f"postgresql+nodriver://head:{CANARY}@db1/steward",
        f"mysql://head:{CANARY}/with:colon@db1/steward",
        f"mysql+nodriver://head:an@{CANARY}@db1/steward",
        f"sqlite:////no/such/folder/x.db?password={CANARY}",
        f"nonsense {CANARY}",
    ],
)
def test_a_database_that_cannot_be_had_is_told_without_its_password(place: Place, url: str) -> None:
    file = place.folder / "database.toml"
    file.write_text(place.config.read_text().replace("[head]", f'[head]\ndatabase = "{url}"', 1))
    daemon = [sys.executable, "-m", "steward.head", "--config", str(file), "--log-level", "debug"]
    ended = subprocess.run(daemon, capture_output=True, text=True, timeout=300, env=environment())
    show = [sys.executable, "-c", "from steward.cli import main; main()", "config", "show", "--config", str(file)]
    shown = subprocess.run(show, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, shown.returncode) == (1, 0)
    assert "database" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert CANARY not in ended.stdout + ended.stderr + shown.stdout + shown.stderr
