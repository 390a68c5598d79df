"""The connection to the coordinator of each elastic run on this node, and the file that keeps the runs.

The file keeps the runs over a restart of the agent, with their secrets, readable by root alone. A coordinator is a
process of the job's user: its reports are hostile input, and no order is sent before the kernel has confirmed the user
of the other end.
"""

import asyncio
import json
import logging
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from steward.adapters import proc
from steward.adapters.codec import int_field, text_field
from steward.adapters.files import read_json, write_json
from steward.adapters.node.elastic_start import CoordinatorPlace
from steward.adapters.offload import Threads
from steward.adapters.socket_owner import peer_of
from steward.adapters.wire.frames import Malformed, strict_json
from steward.adapters.wire.messages import opted_of, opted_record, record_of
from steward.model.ask import OptedIn
from steward.model.text import cause_and_file
from steward.ports import PortError

log = logging.getLogger(__name__)

MAX_LINE = 256 * 1024
HEAR_EVERY_S = 0.05
"""The interval of reads. Each report replaces the one before, so of those that arrived only the last is parsed: a user
can send thousands."""
_REST = 100.0
"""The shortest pause after a report, in multiples of its CPU time, so that a run costs one percent of a core at most.

A report of 256 KiB may take 11 ms, and a user may have eight runs here."""
_DIAL_S = 2.0
_MAX_UNSENT = 1 << 20

Heard = Callable[[Mapping[str, Any]], None]
"""Take one report of the coordinator; raises Malformed."""


class ElasticLine:
    """The connection to the coordinator of one elastic run."""

    def __init__(self, place: CoordinatorPlace, heard: Heard, threads: Threads) -> None:
        self._place, self._heard, self._threads = place, heard, threads
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._process: proc.ProcessKey | None = None

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    async def open(self) -> bool:
        """Connect to the coordinator; return False if no process of the run's user listens."""
        try:
            dialled = await self._threads.call(self._place.dial, name="coordinator", timeout_s=_DIAL_S)
            reader, writer = await asyncio.open_unix_connection(sock=dialled, limit=MAX_LINE)
        except (OSError, PortError, ValueError):
            return False
        pid, uid = peer_of(writer.get_extra_info("socket"))
        if uid != self._place.uid:
            log.warning("not the coordinator run=%d uid=%d is=%d", self._place.run, self._place.uid, uid)
            writer.transport.abort()
            return False
        # the user chose this process: reading of it may hang
        try:
            seen = await self._threads.call(partial(proc.look, pid), name="coordinator's process", timeout_s=_DIAL_S)
        except (OSError, PortError):
            writer.transport.abort()
            return False
        self._process = None if seen is None else seen.process
        self._writer = writer
        self._reading = asyncio.get_running_loop().create_task(self._read(reader, writer))
        return True

    def send(self, order: Mapping[str, Any]) -> bool:
        """Send an order; return False if there is no connection, or the coordinator does not read."""
        writer = self._writer
        if writer is None or writer.transport.get_write_buffer_size() > _MAX_UNSENT:
            return False
        writer.write(json.dumps(order).encode() + b"\n")
        return True

    def close(self, *, end: bool = False) -> None:
        """Close the connection; with `end` (the run is over) also send SIGTERM to the coordinator."""
        if self._writer is not None:
            self._writer.transport.abort()
        if self._reading is not None:
            self._reading.cancel()
        if end and self._process is not None and proc.real_uid(self._process.pid) == self._place.uid:
            proc.send(self._process, signal.SIGTERM)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        rest = b""
        try:
            while piece := await reader.read(MAX_LINE):
                began = time.thread_time()
                *_, last, rest = (b"\n" + rest + piece).rsplit(b"\n", 2)
                if len(rest) > MAX_LINE:
                    raise Malformed(f"a line is longer than {MAX_LINE} bytes")
                if last and isinstance(value := strict_json(last), dict):
                    self._heard(value)
                await asyncio.sleep(pause_s(time.thread_time() - began))
        except (OSError, ValueError, RecursionError, Malformed) as error:
            log.warning("elastic line ends run=%d why=%r", self._place.run, cause_and_file(error)[:200])
        finally:
            writer.transport.abort()
            self._writer = None


def pause_s(spent_s: float) -> float:
    """Return how long (s) to hear no further report after one that cost this CPU time (s)."""
    return max(HEAR_EVERY_S, _REST * spent_s)


# The file of the runs.


def write_runs(path: Path, runs: Iterable[tuple[OptedIn, CoordinatorPlace]]) -> None:
    """Save the runs, readable by root alone; log an error instead of raising it."""
    records = [{"opted": opted_record(opted), "port": place.port, "token": place.token} for opted, place in runs]
    try:
        write_json(path, records)
        path.chmod(0o600)
    except (PortError, OSError) as error:
        log.warning("elastic runs not saved why=%r", cause_and_file(error))


def read_runs(path: Path) -> list[tuple[OptedIn, int, str]]:
    """Return the saved runs: each job's request, its port and its secret."""
    found = []
    records = read_json(path)
    for value in records if isinstance(records, list) else []:
        try:
            record = record_of(value)
            opted = opted_of(record.get("opted"))
            found.append((opted, int_field(record, "port", low=1, high=65535), text_field(record, "token", 64)))
        except PortError as error:
            log.warning("elastic run dropped from=%s why=%r", path, str(error))
    return found
