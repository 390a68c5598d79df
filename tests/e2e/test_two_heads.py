"""Two heads on one MariaDB: the leader dies, is stopped and woken, hands over; the database stands still."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steward.client import Client, HeadError
from steward_bed.bed import Bed, BedError, Overrides
from steward_bed.beds import reset
from steward_bed.faults import FaultKind
from steward_bed.local_setup import free_ports
from tests.contract.mariadb import MariaDb, a_mariadb, missing
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import Story, task_script


@dataclass
class SecondHead:
    """The second head's process, started anew whenever it ends, as a service manager does; and its page."""

    file: Path
    log: Path
    url: str
    env: dict[str, str]
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    def steps_of(self, node: str, began: float) -> list[str]:
        """Where the node's repairs are; raises BedError while it decides nothing: not yet."""
        try:
            cases = Client(self.url, lambda payload: "").array("/v1/cases")
        except HeadError as error:
            raise BedError(str(error)) from error
        return [one["step"] for one in cases if one["node"] == node and one["opened"] >= began]

    def start(self) -> None:
        with self.log.open("ab") as out:
            argv = [sys.executable, "-m", "steward.head", "--config", str(self.file)]
            self.process = subprocess.Popen(argv, env=self.env, stdout=out, stderr=out)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass
class TwoHeads:
    bed: Bed
    second: SecondHead
    database: MariaDb

    def heads(self) -> dict[str, Any]:
        """What one of the heads says of all, where it follows by asking the leader; raises BedError: not yet."""
        why = ""
        for url in (self.second.url, self.bed.env["STEWARD_URL"]):
            try:
                found: dict[str, Any] = Client(url, lambda payload: "").object("/v1/status")["heads"]
            except HeadError as error:
                why = str(error)
            else:
                return found
        raise BedError(why)


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest) -> Iterator[TwoHeads]:
    if absent := missing():
        pytest.skip(f"no MariaDB: {', '.join(absent)} not installed (mariadb-server-core)")
    with a_mariadb() as database:
        first, *of_second = free_ports(4)
        heads = [f"127.0.0.1:{first}", f"127.0.0.1:{of_second[0]}"]
        settings: Overrides = {
            "head": {"listen": heads[0], "database": database.database()},
            "agent": {"head": heads},
        }
        for bed in brought_up(request, nodes=4, steward=True, settings=settings):
            with _beside(bed, of_second, heads) as second:
                yield TwoHeads(bed, second, database)


@contextmanager
def _beside(bed: Bed, ports: list[int], heads: list[str]) -> Iterator[SecondHead]:
    """A second head with the first one's settings, but for where it listens and what is its own."""
    first = Path(bed.env["STEWARD_CONFIG"])
    folder = first.parent / "second"
    folder.mkdir()
    _, http, users = ports
    own = {
        "listen": heads[1],
        "http": f"127.0.0.1:{http}",
        "users_http": f"127.0.0.1:{users}",
        "state_dir": str(folder / "state"),
    }
    lines, table = [], ""
    for line in first.read_text().splitlines():
        table = line.strip("[]") if line.startswith("[") else table
        key = line.partition("=")[0].strip()
        lines.append(f'{key} = "{own[key]}"' if table == "head" and key in own else line)
    file = folder / "steward.toml"
    file.write_text("\n".join([*lines, ""]))
    env = {**os.environ, **bed.env, "STEWARD_CONFIG": str(file)}
    second = SecondHead(file, folder / "stewardd.log", f"http://127.0.0.1:{http}", env)
    second.start()
    try:
        yield second
    finally:
        second.kill()


@pytest.fixture
def story(pair: TwoHeads, request: pytest.FixtureRequest) -> Iterator[Story]:
    """The first head leads, and the second could take over."""
    if pair.second.process is None or pair.second.process.poll() is not None:
        pair.second.start()
    reset(pair.bed)
    with own_place(pair.bed, request) as place:
        story = Story(pair.bed, place)
        story.wait("the second head could take over", lambda: _is_ready(pair), 40.0)
        yield story


def _is_ready(pair: TwoHeads) -> bool:
    return [other["why_not"] for other in pair.heads()["others"]] == [""]


def _leader(pair: TwoHeads) -> str:
    return str(pair.heads()["leader"])


def test_the_leader_dies_with_a_node_and_the_job_runs_again(story: Story, pair: TwoHeads) -> None:
    before = _leader(pair)
    task = task_script(story)
    job = story.submit(story.script("train.sh", f"srun bash {task}\n"), "--auto-resume=1", "-N2", "-n2")
    story.wait("two tasks run", lambda: len(story.lines("started")) == 2)
    story.hurt(FaultKind.KILL_HEAD)
    story.hurt(FaultKind.KILL_NODE, story.job(job).batch_host)

    story.wait("the job runs again", lambda: len(story.lines("started")) == 4, 60.0)
    assert _leader(pair) != before
    assert story.job(job).restarts == 1
    story.hurt(FaultKind.START_HEAD)
    story.wait("the first head follows", lambda: _is_ready(pair), 40.0)
    (story.dir / "go").touch()
    assert story.wait_end(job).state == "COMPLETED"


def test_a_leader_that_is_stopped_and_woken_does_nothing_and_the_other_repairs_its_node(
    story: Story, pair: TwoHeads
) -> None:
    """Its timer ends it while it is stopped."""
    pair.second.kill()
    story.wait("the first head leads", lambda: story.get("/v1/status")["heads"]["leader"], 20.0)
    pair.second.start()
    story.wait("the second head could take over", lambda: _is_ready(pair), 40.0)
    began = story.hurt(FaultKind.KILL_NODE, "n2")
    story.wait("a case is open", lambda: story.cases("n2", since=began), 20.0)
    story.hurt(FaultKind.STOP_HEAD)

    story.wait("the second head has repaired the node", lambda: pair.second.steps_of("n2", began) == ["closed"], 90.0)
    assert pair.bed.status().services["stewardd"] is False
    story.hurt(FaultKind.START_HEAD)
    story.wait("the first head follows", lambda: _is_ready(pair), 40.0)
    assert len(story.cases("n2", since=began)) == 1


def test_a_handover_lets_the_other_head_lead(story: Story, pair: TwoHeads) -> None:
    before = _leader(pair)
    pair.bed.run(["steward", "head", "handover"])

    story.wait("the other head leads", lambda: _leader(pair) not in ("", before), 20.0)


def test_while_the_database_stands_still_no_head_acts_and_the_repair_goes_on_after_it(
    story: Story, pair: TwoHeads
) -> None:
    server = int((pair.database.socket.parent / "pid").read_text())
    os.kill(server, signal.SIGSTOP)
    try:
        began = story.hurt(FaultKind.KILL_NODE, "n3")
        story.wait("Slurm has noticed", lambda: story.node_state("n3"), 5.0)
        reason = story.node_field("n3", "Reason")
    finally:
        os.kill(server, signal.SIGCONT)
    assert "steward:" not in reason
    story.wait("a case is closed", lambda: [c["step"] for c in story.cases("n3", since=began)] == ["closed"], 120.0)
