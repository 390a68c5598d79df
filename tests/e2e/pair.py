"""Two heads on one MariaDB beside a local bed: its own head, and a second one that comes back as the first one does."""

import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import steward
from steward.adapters import proc
from steward.adapters.proc import ProcessKey
from steward.client import Client, HeadError
from steward_bed.bed import Bed, BedError, Overrides
from steward_bed.layout import Layout
from steward_bed.local_setup import free_ports
from steward_bed.providers import local_machine
from steward_bed.providers.local_machine import Machine, Program, own_environment
from steward_bed.wait import wait_until
from tests.contract.mariadb import MariaDb, a_mariadb

READY_S = 40.0
"""How long it may take until a head that was started could take over."""
_PROGRAM = "stewardd"
_ENDS_S = 30.0


@dataclass
class SecondHead:
    """The second head on a machine of its own. `folder` is its working directory, with all that is its own."""

    folder: Path
    name: str
    url: str
    machine: Machine

    @property
    def process(self) -> ProcessKey | None:
        return self.machine.program(_PROGRAM)

    def start(self) -> None:
        """Start it if it has ended."""
        local_machine.restart_programs(self.machine)
        wait_until("the second head runs", lambda: self.process is not None, _ENDS_S, every_s=0.01)

    def kill(self) -> None:
        """kill -9; it stays dead until `start`."""
        local_machine.kill_program(self.machine, _PROGRAM)
        wait_until("the second head is dead", lambda: self.process is None, _ENDS_S, every_s=0.01)

    def signal(self, number: signal.Signals) -> None:
        if (process := self.process) is not None:
            proc.send(process, number)

    def stop(self) -> None:
        """As the service manager stops it."""
        self.signal(signal.SIGTERM)
        wait_until("the second head has ended", lambda: self.process is None, _ENDS_S, every_s=0.01)


@dataclass
class Pair:
    bed: Bed
    first: str
    """The first head's name."""
    second: SecondHead
    database: MariaDb

    @property
    def urls(self) -> tuple[str, str]:
        return self.bed.env["STEWARD_URL"], self.second.url

    def heads(self) -> dict[str, Any]:
        """What the leader says of all heads; raises BedError: not yet."""
        with _not_yet():
            found: dict[str, Any] = self._client().object("/v1/status")["heads"]
        return found

    def events(self, kind: str, since: float) -> list[dict[str, Any]]:
        """Events of this kind, oldest first; raises BedError: not yet."""
        with _not_yet():
            told = self._client().array("/v1/events?limit=5000")
        return [event for event in told if event["kind"] == kind and event["at"] >= since]

    def leader(self) -> str:
        return str(self.heads()["leader"])

    def is_ready(self) -> bool:
        """Whether the head that follows could take over now."""
        return [other["why_not"] for other in self.heads()["others"]] == [""]

    def await_ready(self) -> None:
        wait_until("the other head could take over", self.is_ready, READY_S)

    def start_both(self) -> None:
        """Start what has ended, once no machine is being replaced."""

        def restored() -> bool:
            self.bed.restore()
            return True

        wait_until("what has ended runs again", restored, READY_S)
        self.second.start()
        self.await_ready()

    def let_first_lead(self) -> None:
        """The first head leads, and the second one could take over."""
        self.start_both()
        if self.leader() != self.first:
            self.second.kill()
            wait_until("the first head leads", lambda: self.leader() == self.first, READY_S)
            self.second.start()
            self.await_ready()

    def cases(self, node: str, since: float) -> list[dict[str, Any]]:
        """The node's repairs, by whichever head leads; raises BedError: not yet."""
        with _not_yet():
            found = self._client().array("/v1/cases")
        return [one for one in found if one["node"] == node and one["opened"] >= since]

    def steps_of(self, node: str, since: float) -> list[str]:
        return [one["step"] for one in self.cases(node, since)]

    def install(self, version: str) -> None:
        """Put another build in place on both hosts: a head that starts from now on is that one."""
        package = Path(steward.__file__).parent
        build = self.second.folder / version
        shutil.copytree(package, build / "steward", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        init = build / "steward" / "__init__.py"
        init.write_text(init.read_text().replace(f'"{steward.__version__}"', f'"{version}"'))
        self.uninstall()
        for link in self._installed:
            link.symlink_to(build / "steward")

    def uninstall(self) -> None:
        """Put the build of this checkout back."""
        for link in self._installed:
            link.unlink(missing_ok=True)

    def _client(self) -> Client:
        return Client(",".join(self.urls), lambda payload: "")

    @property
    def _installed(self) -> tuple[Path, Path]:
        """Where Python looks first when a head starts: in its working directory."""
        return self.second.folder / "steward", Layout(root=self.bed.spec.dir).controller / "steward"


@contextmanager
def _not_yet() -> Iterator[None]:
    """Where no head answers, a wait is to look again."""
    try:
        yield
    except HeadError as error:
        raise BedError(str(error)) from error


@contextmanager
def a_pair(bring_up: Callable[[Overrides], AbstractContextManager[Bed]], settings: Overrides) -> Iterator[Pair]:
    """`bring_up` brings up a local bed with these settings; `settings` are others of both heads."""
    with a_mariadb() as database:
        first, *of_second = free_ports(4)
        heads = [f"127.0.0.1:{first}", f"127.0.0.1:{of_second[0]}"]
        own: Overrides = {
            **settings,
            "head": {**settings.get("head", {}), "listen": heads[0], "database": database.database()},
            "agent": {**settings.get("agent", {}), "head": heads},
        }
        with bring_up(own) as bed:
            second = _beside(bed, of_second, heads[1])
            try:
                pair = Pair(bed, heads[0], second, database)
                pair.await_ready()
                yield pair
            finally:
                local_machine.power_off(second.machine)


def _beside(bed: Bed, ports: list[int], name: str) -> SecondHead:
    """Start a second head with the first one's settings, but for where it listens and what is its own."""
    first = Path(bed.env["STEWARD_CONFIG"])
    folder = first.parent / "second"
    folder.mkdir()
    _, http, users = ports
    own = {
        "listen": name,
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
    program = Program(
        name=_PROGRAM,
        argv=(sys.executable, "-m", "steward.head", "--config", str(file)),
        env=own_environment({"SLURM_CONF": bed.env["SLURM_CONF"]}),
        log=folder / "stewardd.log",
        comes_back=True,
    )
    state = folder / "programs"
    machine = local_machine.power_on("the second head", (program,), cwd=folder, state=state, keep_orphans=False)
    return SecondHead(folder, name, f"http://127.0.0.1:{http}", machine)
