"""How the agent names the head with which it could not agree."""

import asyncio
import os
import pwd
from pathlib import Path

import pytest

from steward.adapters.wire.frames import Gone
from steward.agent import wiring
from steward.agent.config import AgentConfig
from steward.agent.opted import OptedBook
from steward.model.agent_tables import AgentSettings, ClusterSettings
from tests.fakes.munge import FakeMunged
from tests.fakes.wires import HELLO, sealer


def test_a_failed_handshake_is_told_with_the_heads_address(tmp_path: Path) -> None:
    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def story() -> None:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            head = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            config = AgentConfig(
                cluster=ClusterSettings(slurm_user=pwd.getpwuid(os.getuid()).pw_name), agent=AgentSettings(head=(head,))
            )
            book = OptedBook(tmp_path / "opted.json")
            with pytest.raises(Gone, match=f"the head at {head}: the connection ended"):
                await wiring._Connect(config, head, HELLO.node, HELLO.incarnation, book, sealer(FakeMunged()))()

    asyncio.run(story())
