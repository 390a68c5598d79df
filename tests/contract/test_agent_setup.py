"""A real agent under a real munge, ordered by a head to run lifecycle scripts; it is killed and keeps its word."""

import asyncio
import getpass
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from steward.adapters.munge import Munge
from steward.adapters.offload import Threads
from steward.adapters.wire.seal import Sealer
from steward.head.hub import Hub
from steward.head.piece_files import SetupLogs
from steward.model.agent_action import SetUpNode
from steward.model.ids import Key, NodeName
from steward.model.observed import AgentView
from steward.model.setup import Lifecycle, SetupReport, SetupState
from steward.model.why import Why
from tests.contract.test_munge import sockets
from tests.fakes.clock import FakeClock
from tests.fakes.setups import CONFIG
from tests.fakes.until import FACT_S

__all__ = ["sockets"]
pytestmark = pytest.mark.timeout(300)

N1 = NodeName("n1")


@dataclass
class Site:
    """One head and one node of a cluster; `agent` is the node's daemon while it runs."""

    home: Path
    munge_socket: Path
    agent: asyncio.subprocess.Process | None = None
    port: int = 0
    hub: Hub = field(init=False)
    logs: SetupLogs = field(init=False)

    async def listen(self) -> None:
        sealer = Sealer(Munge(str(self.munge_socket)), frozenset({os.getuid()}), Threads(4))
        self.logs = SetupLogs(self.home / "head-logs", keep_days=1)
        self.hub = Hub(
            sealer=sealer, clock=FakeClock(), ring=lambda: None, tell=lambda event: None, keep_log=self.logs.take
        )
        self.port = await self.hub.start(socket.create_server(("127.0.0.1", 0)))

    def configure(self) -> Path:
        (self.home / "source").mkdir()
        for name in ("instance_id", "boot_id"):
            (self.home / name).write_text(f"{name}-1\n")
        (self.home / "steward.toml").write_text(
            f"""
[cluster]
slurm_user = "{getpass.getuser()}"
munge_socket = "{self.munge_socket}"
[agent]
head = "127.0.0.1:{self.port}"
socket = "{self.home}/agent.sock"
state_dir = "{self.home}/state"
instance_id_file = "{self.home}/instance_id"
boot_id_file = "{self.home}/boot_id"
site_checks_dir = "{self.home}/checks.d"
kernel_log = "{self.home}/kernel.log"
setup_dir = "{self.home}/setup"
setup_log = "{self.home}/provisioning.log"
config_dir = "{self.home}/config"
"""
        )
        (self.home / "kernel.log").touch()
        return self.home / "steward.toml"

    async def start_agent(self) -> None:
        argv = (sys.executable, "-m", "steward.agent", "--config", str(self.home / "steward.toml"), "--node", "n1")
        with (self.home / "agent.log").open("ab") as log:
            self.agent = await asyncio.create_subprocess_exec(*argv, stderr=log)
        await self.until("the agent is connected", lambda: (view := self.view) is not None and view.connected)

    async def kill_agent(self) -> None:
        assert self.agent is not None
        self.agent.send_signal(signal.SIGKILL)
        await self.agent.wait()
        await self.until("the head knows", lambda: (view := self.view) is not None and not view.connected)

    def script(self, text: str) -> None:
        (self.home / "source/on_create.sh").write_text(text)

    def order(self, token: str) -> None:
        lifecycle = Lifecycle(source=(self.home / "source").as_uri(), on_create="on_create.sh")
        self.hub.order(
            SetUpNode(
                key=Key(f"setup:{token}"),
                why=Why(rule="test", text="new"),
                node=N1,
                token=token,
                lifecycle=lifecycle,
                timeout_s=60.0,
                resource_config=CONFIG,
            )
        )

    @property
    def view(self) -> AgentView | None:
        return self.hub.views().get(N1)

    @property
    def setup(self) -> SetupReport | None:
        return self.view.setup if self.view else None

    def ended(self, token: str) -> bool:
        setup = self.setup
        return setup is not None and setup.token == token and setup.state is not SetupState.RUNNING

    async def until(self, sentence: str, true: Callable[[], object]) -> None:
        end = asyncio.get_running_loop().time() + FACT_S
        while not true():
            said = (self.home / "agent.log").read_text()
            assert asyncio.get_running_loop().time() < end, f"not within {FACT_S:g} s: {sentence}\n{said}"
            await asyncio.sleep(0.02)


@asynccontextmanager
async def a_site(munge_socket: Path) -> AsyncIterator[Site]:
    with tempfile.TemporaryDirectory(prefix="steward-setup-") as home:
        site = Site(Path(home), munge_socket)
        await site.listen()
        site.configure()
        (site.home / "agent.log").touch()
        await site.start_agent()
        try:
            yield site
        finally:
            if site.agent is not None and site.agent.returncode is None:
                site.agent.kill()
                await site.agent.wait()
            await site.hub.close()


def test_the_head_sees_how_it_went_and_has_the_log(sockets: tuple[Path, Path]) -> None:
    async def story() -> None:
        async with a_site(sockets[0]) as site:
            site.script("echo out of licences; exit 3\n")
            site.order("t-1")
            await site.until("it is over", lambda: site.ended("t-1"))
            setup = site.setup
            assert setup is not None
            assert (setup.state, setup.step, setup.exit_status) == (SetupState.FAILED, "OnCreate", 3)
            assert setup.lines[-1] == "out of licences"
            log = site.logs.path(N1, "t-1")
            await site.until("the log is there", lambda: log.exists() and "did not run successfully" in log.read_text())
            assert "\nout of licences\n" in log.read_text()

    asyncio.run(story())


def test_an_agent_that_is_killed_does_not_end_the_script_nor_run_it_twice(sockets: tuple[Path, Path]) -> None:
    async def story() -> None:
        async with a_site(sockets[0]) as site:
            trace = site.home / "trace"
            site.script(f"echo began >> {trace}; while ! test -e {site.home}/go; do sleep 0.05; done; echo bye\n")
            site.order("t-1")
            await site.until("it runs", trace.exists)
            await site.kill_agent()
            await site.start_agent()
            site.order("t-1")
            await site.until("it is told to run", lambda: site.setup and site.setup.state is SetupState.RUNNING)
            (site.home / "go").touch()
            await site.until("it is over", lambda: site.ended("t-1"))
            assert site.setup is not None
            assert site.setup.state is SetupState.SUCCEEDED
            assert trace.read_text() == "began\n"
            log = site.logs.path(N1, "t-1")
            await site.until("the whole log is there", lambda: log.exists() and "\nbye\n" in log.read_text())

    asyncio.run(story())


def test_the_agent_beats_on_while_a_script_takes_all_it_can(sockets: tuple[Path, Path]) -> None:
    """Busy, and with more output than anybody wants."""

    async def story() -> None:
        async with a_site(sockets[0]) as site:
            site.script("timeout 4 yes; timeout 1 cat /dev/urandom | base64; exit 0\n")
            site.order("t-1")
            lost: list[str] = []

            def over() -> bool:
                view = site.view
                if view is not None and (view.late or not view.connected):
                    lost.append(view.lost_why or "late")
                return site.ended("t-1")

            await site.until("it is over", over)
            assert lost == []
            log = site.logs.path(N1, "t-1")
            await site.until("the log is there", lambda: log.stat().st_size > 1_000_000)
            assert (site.home / "provisioning.log").stat().st_size < 70_000_000

    asyncio.run(story())
