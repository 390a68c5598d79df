"""The coordinator's connections: one from each of torchrun's agents (TCP), and Steward's agent's.

Both ends of a TCP connection prove that they know the run's token, the coordinator first; the token is never sent.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steward.elastic.peer import MAX_LINE, BadWord, int_of, nodes_of, peer_of
from steward.elastic.run import CoordinatedRun
from steward.model.proof import is_proof, proof

SILENT_S = 5.0
"""An agent that is silent for this long counts as lost."""
BEAT_S = 1.0
HELLO_S = 10.0
"""How long an agent may take for its hello and proof."""
IDLE_S = 600.0
"""The coordinator ends after this time without any connected agent."""
SAY_AGAIN_S = 5.0
"""The interval of reports without news to the head."""
_TICK_S = 0.05
_MAX_UNSENT = 1 << 20
_MAX_UNPROVED = 256
"""The most connections without a proof, which any host of the network can open; beyond, the oldest is dropped."""
_log = logging.getLogger(__name__)

Line = dict[str, Any]


class Coordinator:
    """The server of a run: hands messages and the time to the run, and sends the run's lines to its agents."""

    def __init__(self, name: str, run: CoordinatedRun, folder: Path, token: str, *, silent_s: float = SILENT_S) -> None:
        self.name, self.run, self.folder, self.token, self.silent_s = name, run, folder, token, silent_s
        self.run_digest = hashlib.sha256(token.encode()).hexdigest()
        """The sign of this run in the state file; each run of a job has its own token."""
        self.lines: dict[str, asyncio.StreamWriter] = {}
        self.relays: set[asyncio.StreamWriter] = set()
        self.unproved: dict[asyncio.StreamWriter, None] = {}
        self.saved_text = ""
        self.last_word: Line = {}
        self.last_word_at = float("-inf")
        self.heard_at = time.monotonic()

    async def serve(self, host: str, port: int, stopped: asyncio.Event, listening: socket.socket | None = None) -> None:
        """Serve until `stopped`, or until no agent was connected for `IDLE_S`; write the address file at the start.

        Without a host listen at all addresses. `listening` is a socket that listens already, in place of host and port.
        """
        relay = self.folder / "relay.sock"
        relay.unlink(missing_ok=True)
        self.restore()
        where: dict[str, Any] = {"sock": listening} if listening else {"host": host or None, "port": port}
        members = await asyncio.start_server(self.hear_member, limit=MAX_LINE, **where)
        before = os.umask(0o177)
        try:
            agents = await asyncio.start_unix_server(self.hear_relay, f"{relay}.tmp", limit=MAX_LINE)
        finally:
            os.umask(before)
        relay.with_name(f"{relay.name}.tmp").rename(relay)  # the name appears when the socket listens
        _write(self.folder / "address", f"{host} {members.sockets[0].getsockname()[1]}\n")
        async with members, agents:
            await self.turn(stopped)
            self.send_away()
            for writer in [*self.lines.values(), *self.relays]:
                writer.close()

    async def turn(self, stopped: asyncio.Event) -> None:
        beat_at = 0.0
        while not stopped.is_set() and time.monotonic() - self.heard_at < IDLE_S:
            now = time.monotonic()
            if self.lines or self.relays:
                self.heard_at = now
            self.run.tick(now)
            if now >= beat_at:
                beat_at = now + BEAT_S
                for node in self.run.peers:
                    self.run.outbox.append((node, {"beat": True}))
            self.flush()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), _TICK_S)

    def send_away(self) -> None:
        """Tell the agents that the coordinator ends; if no base node is connected, tell them to leave."""
        # While a base node is connected, its job may go on, and the run with the job under another coordinator.
        is_over = not any(peer.is_base for peer in self.run.peers.values())
        self.run.outbox += [(node, {"leave": True} if is_over else {"ends": True}) for node in self.run.peers]
        self.flush()

    async def hear_member(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one of torchrun's agents; hang up on a peer that does not prove that it knows the token."""
        self.unproved[writer] = None
        if len(self.unproved) > _MAX_UNPROVED:
            oldest = next(iter(self.unproved))
            del self.unproved[oldest]
            oldest.transport.abort()
        node = ""
        try:
            hello = await asyncio.wait_for(self.greet(reader, writer), HELLO_S)
            self.unproved.pop(writer, None)
            if not (node := self.arrive(hello, writer)):
                return
            while line := await asyncio.wait_for(reader.readline(), self.silent_s):
                if self.lines.get(node) is not writer:
                    break
                self.take(node, _line_of(line))
        except (BadWord, TimeoutError, OSError, ValueError) as error:
            _log.warning("a connection ends node=%s why=%s", node or "-", error or type(error).__name__)
        finally:
            self.unproved.pop(writer, None)
            if node and self.lines.get(node) is writer:
                del self.lines[node]
                self.run.lost(node, time.monotonic())
                self.flush()
            writer.close()

    async def greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Line:
        """Prove that this is the run's coordinator, and return an agent's hello with its proof. Raises BadWord."""
        theirs, mine = str(_line_of(await reader.readline()).get("nonce", "")), secrets.token_hex(16)
        _send(writer, {"nonce": mine, "proof": proof(self.token, "coordinator", theirs, mine)})
        hello = _line_of(await reader.readline())
        if not is_proof(hello.get("proof"), self.token, "member", theirs, mine):
            raise BadWord("its proof is not of this run")
        return hello

    def arrive(self, hello: Line, writer: asyncio.StreamWriter) -> str:
        """Let an agent join and return its node; empty: refused, because another agent of the node takes part."""
        peer, members = peer_of(hello), nodes_of(hello, "members")
        known = self.run.peers.get(peer.node)
        if known is not None and (known.agent != peer.agent or not peer.agent) and (known.is_base or not peer.is_base):
            _send(writer, {"refused": f"another agent of node {peer.node} takes part"})
            return ""  # or both would replace each other for ever
        if before := self.lines.pop(peer.node, None):
            before.close()
        self.lines[peer.node] = writer
        self.run.join(peer, members, time.monotonic())
        _send(writer, {"beat": True})  # shows the agent that a coordinator answers
        self.flush()
        return peer.node

    def take(self, node: str, line: Line) -> None:
        """Handle one line of an agent: `wait`, `notice`, `over`, or a message of its processes."""
        now = time.monotonic()
        if "wait" in line:
            self.run.wait(node, line, now)
        elif "notice" in line:
            self.run.notice(node, now)
        elif "what" in line:
            self.run.handle_message(node, line, now)
        elif line.get("over") in ("done", "failed"):
            self.run.handle_end(node, str(line["over"]), now)
        if line != {"beat": True}:
            self.flush()

    async def hear_relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve Steward's agent on this node: take orders, send the run's state. The socket's mode controls access."""
        self.relays.add(writer)
        _send(writer, {"run": self.name, **word_of(self.run)})
        try:
            while line := await reader.readline():
                order = _line_of(line)
                if order.get("order") == "resize":
                    self.run.order(order, time.monotonic())
                    self.flush()
        except (BadWord, OSError, ValueError) as error:
            _log.warning("the connection of Steward's agent ends why=%s", error)
        finally:
            self.relays.discard(writer)
            writer.close()

    def flush(self) -> None:
        """Save the state for a restart, send the run's lines, and report news to the head (steps once a second)."""
        self.keep()
        out, self.run.outbox = self.run.outbox, []
        for node, line in out:
            if writer := self.lines.get(node):
                _send(writer, line)
        word, now = word_of(self.run), time.monotonic()
        counters = {"step", "consumed"}
        is_news = any(word[key] != self.last_word.get(key) for key in word if key not in counters)
        is_step = word != self.last_word and now - self.last_word_at >= BEAT_S
        if is_news or is_step or now - self.last_word_at >= SAY_AGAIN_S:
            self.last_word, self.last_word_at = word, now
            for writer in self.relays:
                _send(writer, {"run": self.name, **word})

    def keep(self) -> None:
        """Save the state, before any agent hears of a new generation."""
        run = self.run
        words = {"generation": run.generation, "members": list(run.members), "trained": run.trained}
        kept = json.dumps({"run": self.run_digest, **words})
        if kept != self.saved_text:
            self.saved_text = kept
            _log_failure_of(lambda: _write(self.folder / "state.json", kept))

    def restore(self) -> None:
        """Load the state of an earlier coordinator of this run, and wait a while for its members to come back."""
        try:
            kept = _line_of((self.folder / "state.json").read_bytes())
            generation, members = int_of(kept, "generation", high=1 << 31), nodes_of(kept, "members")
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            _log.warning("cannot read the saved state %s: %s", self.folder / "state.json", error)
            return
        if kept.get("run") != self.run_digest:
            return  # the state of the job's run before its requeue
        self.run.generation, self.run.members, self.run.trained = generation, members, kept.get("trained") is True
        if generation and members:
            self.run.state, self.run.why = "running", "the coordinator restarted"
            self.run.expect_all(time.monotonic())


def word_of(run: CoordinatedRun) -> Line:
    """Return the state of the run, as reported to the head."""
    return {
        "state": "ended" if run.is_finished else {"done": "running", "failed": "waiting"}.get(run.state, run.state),
        "generation": run.generation,
        "members": list(run.members),
        "joined": sorted(run.peers),
        "leaving": sorted(node for node, peer in run.peers.items() if peer.is_leaving),
        "step": run.step,
        "saved_step": run.saved_step,
        "consumed": run.consumed,
        "why": run.why[:200],
        "steerable": run.is_steerable,
        "begins_to_save": run.begins_to_save,
        "unsaved": list(run.unsaved),
        "again": run.steps.again,
        "timings": {"saved_s": run.saved_s, "up_s": run.up_s, "again_s": run.steps.again_s},
    }


def _line_of(line: bytes) -> Line:
    try:
        value = json.loads(line)
    except RecursionError:
        raise BadWord("a line is nested too deeply") from None
    if not isinstance(value, dict):
        raise BadWord("a line is not a JSON object")
    return value


def _send(writer: asyncio.StreamWriter, line: Line) -> None:
    """Send the line; drop it if the peer does not read its lines."""
    if not writer.is_closing() and writer.transport.get_write_buffer_size() < _MAX_UNSENT:
        writer.write(json.dumps(line).encode() + b"\n")


def _log_failure_of(write: Callable[[], None]) -> None:
    """Write; only log a failure, because a full disk must not end the run."""
    try:
        write()
    except OSError as error:
        _log.warning("cannot save the state: %s", error)


def _write(path: Path, text: str) -> None:
    draft = path.with_name(path.name + ".tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
