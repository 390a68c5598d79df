"""The head ends with its cycle: the service manager starts another one."""

import socket
from typing import Any, cast

import pytest
from starlette.applications import Starlette

from steward.head import serve
from steward.head.wiring import Head
from steward.model.settings import parse
from steward_bed.local_setup import free_ports


class Part:
    """A part of a head that starts and stops at once."""

    def __init__(self, clock_set: str = "") -> None:
        self.clock_set = clock_set

    def run(self) -> None:
        return

    def start(self) -> None:
        return

    def stop(self) -> None:
        return

    def stopping(self) -> None:
        return


class Agents:
    """A hub that hears nobody."""

    async def start(self, listener: socket.socket) -> None:
        listener.close()

    async def close(self) -> None:
        return


def ended(cycle: Part) -> int:
    agents, http = free_ports(2)
    settings = parse(f'[head]\nlisten = "127.0.0.1:{agents}"\nhttp = "127.0.0.1:{http}"\n', source="t", env={})
    part: Any = Part()
    app = Starlette()
    head = Head(cycle=cast(Any, cycle), hub=cast(Any, Agents()), app=app, users=app, notifier=part, notify=part)
    return serve.serve(head, settings)


def test_it_ends_when_its_clock_was_set_back_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert ended(Part(clock_set="the clock was set back by 3600 s")) == 1
    assert "the clock was set back by 3600 s: stewardd ends" in caplog.text


def test_it_ends_when_its_cycle_is_gone_for_another_reason() -> None:
    assert ended(Part()) == 1
