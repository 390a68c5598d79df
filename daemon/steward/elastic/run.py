"""The choice of an elastic run's nodes, generation by generation. Pure: takes events and times, returns lines to send.

A generation is *asked* to save (a flag that all ranks see), *gathers* (its processes are stopped, and each agent of the
next generation waits) and *forms* once, when all of them wait. Each of these has a deadline. Nodes join by an order
only; nodes that are lost or have to leave never stay.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steward.elastic.pace import (
    FINISH_S,
    FIRST_S,
    GATHER_S,
    LOST_S,
    PATIENCE_S,
    RESTORE_S,
    START_S,
    VERDICT_S,
    WAITING_S,
    RestartLoopDetector,
)
from steward.elastic.peer import MAX_PROCESSES, Peer, address_of, fitting, in_order, int_of, nodes_of, optional_int_of
from steward.elastic.steps import Steps

Line = dict[str, Any]
_SLOWER = 1.5
"""The time for a save, in multiples of the slowest earlier save."""


@dataclass(kw_only=True)
class CoordinatedRun:
    """The state of an elastic run, as its coordinator knows it. `out` holds lines to send, each with its node."""

    base: int
    sizes: tuple[int, ...]
    """The allowed sizes in nodes, rising; empty means any."""
    grace_s: float
    generation: int = 0
    members: tuple[str, ...] = ()
    """The nodes of the generation, by rank."""
    state: str = "waiting"
    peers: dict[str, Peer] = field(default_factory=dict)
    outbox: list[tuple[str, Line]] = field(default_factory=list)
    target: tuple[str, ...] = ()
    """The nodes that must wait before the next generation forms; empty once it has formed."""
    next_members: tuple[str, ...] | None = None
    """The members after the change under way; None without a change."""
    next_generation: int = 0
    missing: set[str] = field(default_factory=set)
    """The members without a connected agent, until they come back or are given up."""
    deadlines: dict[str, float] = field(default_factory=dict)
    """The name of each wait under way -> its deadline."""
    step: int | None = None
    saved_step: int | None = None
    consumed: int | None = None
    why: str = "no node has joined yet"
    saved_s: float | None = None
    """How long the last save took, from the order until all had saved."""
    up_s: float | None = None
    """The time from the stop of the last generation to the first report of the present one."""
    asked_at: float = 0.0
    stopped_at: float = 0.0
    """When the last generation was stopped."""
    restart_loops: RestartLoopDetector = field(default_factory=RestartLoopDetector)
    """The generations that began without an order of the head."""
    trained: bool = False
    """Whether a training of this job is done. Only the base takes part in the next training, because a replica's script
    would run the first one again."""
    is_forced: bool = False
    """Whether processes are stopped at the deadline even if they have not saved."""
    asks: bool = False
    """Whether a process of the training asks when to save, so that a change of size can wait for the save."""
    unsaved: tuple[str, ...] = ()
    """The nodes that had not saved when the last generation was stopped."""
    steps: Steps = field(default_factory=Steps)
    failed_first: str = ""
    """The node whose processes failed first; processes of other nodes may have failed because of these."""

    # Messages of agents, orders and time

    def join(self, peer: Peer, members: tuple[str, ...], now: float) -> None:
        """Handle an agent that joins, or comes back after its connection or the coordinator was lost."""
        if peer.generation > self.generation and peer.node in members:
            self.generation, self.members, self.state = peer.generation, members, "running"
            self.expect_all(now)
        self.peers[peer.node] = peer
        self.missing.discard(peer.node)
        if self.asked and peer.node in self.members:
            self._send(peer.node, asked=self.generation)
        self._begin_if_behind(now)
        if peer.is_leaving:  # the agent gave notice to an earlier coordinator, or while there was none
            peer.is_leaving = False
            self.notice(peer.node, now)

    def wait(self, node: str, words: Mapping[str, Any], now: float) -> None:
        """Handle a node without processes (stopped, or never started) that waits for a generation."""
        peer = self.peers[node]
        peer.address, peer.port = address_of(words), int_of(words, "port", high=65535)
        if self._begins_next_training(peer):
            self._prepare_next_training()
        peer.is_waiting, peer.generation = True, 0
        peer.forget_generation()
        if (peer.is_leaving and self.generation) or self.state == "done" or (self.trained and not peer.is_base):
            self._send(node, leave=True)
        elif self.state == "failed":
            self._send(node, fail=self.why)
        else:
            self.missing.discard(node)
            self._begin_if_behind(now)
        self._form_if_ready(now)

    def _begins_next_training(self, peer: Peer) -> bool:
        """Return whether the peer is a new launcher of the base, for another training or a retried step."""
        # By then the last training has ended on all nodes of the base; on a replica it may hang.
        if not peer.is_base or peer.generation or not (self.state == "failed" or self.is_finished):
            return False
        others = (self.peers[node] for node in self.members if node in self.peers and node != peer.node)
        return not any(one.is_base and self._still_works(one.node) for one in others)

    def _prepare_next_training(self) -> None:
        self.state, self.members, self.why = "waiting", (), "another training begins"
        for one in self.peers.values():
            if not one.is_base and not one.is_waiting:
                self._send(one.node, leave=True)

    def notice(self, node: str, now: float) -> None:
        """Handle the notice that the node will be reclaimed."""
        peer = self.peers[node]
        if peer.is_leaving:
            return
        peer.is_leaving = True
        if node in self.target:
            self._gather(tuple(one for one in self.target if one != node), now, f"{node} has to leave")
        elif node not in self.members or self.state == "failed":
            self._send(node, leave=True)
        elif not self.is_over:  # a run that is over ends its processes by itself
            wanted = tuple(one for one in self._members_to_be() if one != node)
            self._order_save(wanted, self._save_s, now, f"{node} has to leave")

    def handle_message(self, node: str, words: Mapping[str, Any], now: float) -> None:
        """Handle a message of a process of the training."""
        peer, what = self.peers[node], words.get("what")
        if int_of(words, "generation", high=1 << 31) != self.generation or node not in self.members or self.target:
            return
        peer.processes = max(1, int_of(words, "ranks", high=MAX_PROCESSES, default=1))
        step, consumed = optional_int_of(words, "step"), optional_int_of(words, "consumed")
        peer.stoppable = peer.stoppable or words.get("stoppable") is True
        self.asks = self.asks or words.get("stoppable") is not True
        if what == "noticed":
            peer.noticed = True
            if not self.asked and not self.is_over:
                self._order_save(self._members_to_be(), None, now, "the coordinator restarted while all saved")
        elif what == "saved":
            peer.saved.add(int_of(words, "local_rank", high=1 << 16))
            self.saved_step = step
            if self.state == "failed":
                self._stop_if_saved(peer)
        elif what == "step":
            self.step = step
        self.steps.saw(step, now)
        self.consumed = self.consumed if consumed is None else consumed
        if self.state == "forming" and self.is_steerable:  # each stoppable node reports so
            self.state = "running"
            self.deadlines.pop("start", None)
            self.up_s = now - self.stopped_at if self.stopped_at else None
        self._gather_if_saved(now)

    def handle_end(self, node: str, how: str, now: float) -> None:
        """Handle the end of the node's processes: `done` or `failed`."""
        peer = self.peers[node]
        peer.outcome = how
        if self.target:
            self._send(node, restart=peer.generation)
        elif how == "done" and not (
            self.asked and peer.noticed
        ):  # after a requested save, an end is not the training's end
            if self.state != "done":
                self.deadlines["finish"] = now + FINISH_S
            self.state, self.why, self.trained = "done", "the training is done", True
            self._send_verdicts_if_finished()
            for waiting in [one.node for one in self.peers.values() if one.is_waiting]:
                self._send(waiting, leave=True)
        elif self.is_over:
            self._send_verdicts_if_finished()
        elif how == "failed" and "verdict" not in self.deadlines:  # a lost node may be the cause: wait for its loss
            self.failed_first = node
            self.deadlines["verdict"] = now + VERDICT_S
        self._gather_if_saved(now)

    def lost(self, node: str, now: float) -> None:
        """Handle the loss of the node's agent: the agent ended, or the node died."""
        peer = self.peers.pop(node, None)
        if self.is_over and not self.peers:
            self.state, self.members, self.why = "waiting", (), "all agents are gone"
            self.deadlines.pop("finish", None)
        elif self.is_over:
            self._send_verdicts_if_finished()
        elif peer is not None:
            self._on_lost_node(node, now, "was lost")

    def order(self, words: Mapping[str, Any], now: float) -> None:
        """Handle the head's order for a new generation with these members.

        Only an order for a newer generation counts; with the present members it cancels the change under way. A
        `patient` order waits for the save and stops no process before it.
        """
        generation = int_of(words, "generation", high=1 << 31, default=self.generation + 1)
        wanted = tuple(node for node in nodes_of(words, "members") if self._may_take_part(node))
        grace_s = float(int_of(words, "grace_s", high=86_400))
        why = str(words.get("why", ""))[:200]
        if generation <= self.generation or self.state == "waiting" or self.is_over or self.target or not wanted:
            return
        if grace_s > 0 and set(wanted) == set(self.members):
            self._cancel_change(why)
            return
        self.next_generation = generation
        if grace_s > 0:
            waits = words.get("patient") is True and not self._is_stoppable
            self._order_save(wanted, None if waits else grace_s, now, why)
        else:
            self._gather(wanted, now, why)

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed."""
        late = [name for name, at in self.deadlines.items() if at <= now]
        for name in late:
            self.deadlines.pop(name, None)
        if "waiting" in late and self.state == "waiting":
            for node in self.peers:
                self._send(node, fail=self.why)
        if self.is_over:
            self._tick_after_end(late)
            return
        if "lost" in late and (self.missing or self._first_behind):
            self._go_on_with_those_here(now)
        elif "save" in late and self.asked:
            self._on_save_deadline(now)
        elif "gather" in late and self.target:
            here = tuple(node for node in self.target if node in self.peers and self.peers[node].is_waiting)
            self._gather(here, now, "some nodes did not stop their processes in time")
        elif "verdict" in late and not self.target:
            self._rule_on_failure(now)
        elif "start" in late and self.state == "forming":
            self.state = "running"

    # Questions

    @property
    def asked(self) -> bool:
        """Whether the ranks of the generation were asked to save."""
        return self.state == "saving"

    @property
    def is_over(self) -> bool:
        """Whether the run's processes ended for good: done, or failed by themselves."""
        return self.state in ("done", "failed")

    @property
    def is_finished(self) -> bool:
        """Whether the training is done on all nodes."""
        return self.state == "done" and "finish" not in self.deadlines

    @property
    def is_steerable(self) -> bool:
        """Whether the processes ask when to save, or may be stopped at any time; otherwise a change loses work."""
        return self.asks or self._is_stoppable

    @property
    def begins_to_save(self) -> bool:
        """Whether a rank has begun to save, or knows that all ranks must."""
        peers = (self.peers[node] for node in self.members if node in self.peers)
        return self.asked and any(peer.noticed or peer.saved for peer in peers)

    @property
    def _is_stoppable(self) -> bool:
        peers = [self.peers[node] for node in self.members if node in self.peers]
        return not self.asks and bool(peers) and all(peer.stoppable for peer in peers)

    @property
    def _save_s(self) -> float:
        """The time to save before a node leaves."""
        # If earlier saves took longer than the grace time, wait longer: without the save the steps are lost for sure.
        return max(self.grace_s, _SLOWER * self.steps.slowest_s)

    # Changes of generation

    def _order_save(self, members: tuple[str, ...], grace_s: float | None, now: float, why: str) -> None:
        """Ask all ranks to save, before the next generation with these members.

        With `grace_s` None the change can wait `PATIENCE_S` for the save.
        """
        self.is_forced = (self.is_forced and self.asked) or grace_s is not None
        until = now + (PATIENCE_S if grace_s is None else grace_s)
        self.deadlines["save"] = min(until, self.deadlines.get("save", until))
        self.next_members, self.why = members, why
        if not self.asked:
            self.state, self.asked_at, self.saved_s, self.up_s = "saving", now, None, None
            for node in self.members:
                self._send(node, asked=self.generation)
        self._gather_if_saved(now)

    def _on_save_deadline(self, now: float) -> None:
        """At the deadline of the save: stop the processes, or cancel a change that can wait if no save has begun."""
        if not (self.is_forced or self.begins_to_save):
            self._cancel_change("no rank reached the end of a step")
            return
        slow = [node for node in self.members if node in self.peers and not self.peers[node].is_at_rest]
        self._gather(
            self._members_to_be(), now, f"{', '.join(slow) or 'no node'} did not save in time: went on without"
        )

    def _cancel_change(self, why: str) -> None:
        """Cancel the change: all ranks train on; if a save has begun, all save and restart with the present members."""
        if not self.asked or any(self.peers[node].is_leaving for node in self.members if node in self.peers):
            return
        self.next_members, self.why = self.members, why
        self.deadlines.pop("save", None)
        if not self.begins_to_save:
            self.state, self.next_members = "running", None
            for node in self.members:
                self._send(node, unasked=self.generation)

    def _gather_if_saved(self, now: float) -> None:
        if self.asked and all(node in self.peers and self.peers[node].is_at_rest for node in self.members):
            self.saved_s = now - self.asked_at
            self.steps.saved(self.saved_s)
            self._gather(self._members_to_be(), now, self.why)

    def _gather(self, wanted: Iterable[str], now: float, why: str) -> None:
        """Begin the next generation: stop running processes, and send away nodes that must leave."""
        self.why, self.stopped_at = why, now
        peers = [self.peers[node] for node in dict.fromkeys(wanted) if node in self.peers]
        chosen = fitting([peer for peer in peers if not peer.is_leaving], self.base, self.sizes)
        begins = not self.target
        if begins and self.state != "waiting":
            busy = [node for node in self.members if node in self.peers and not self.peers[node].is_waiting]
            self.unsaved = tuple(node for node in busy if not self.peers[node].is_at_rest)
            self.steps.stopped(saved=self.saved_step if not self.unsaved and not self.missing else None)
        for name in ("save", "lost", "verdict", "start"):
            self.deadlines.pop(name, None)
        self.missing.clear()
        if begins and self.restart_loops.is_loop(
            now, len(self.peers), is_ordered=self.next_generation > self.generation
        ):
            self.state, self.members, self.why = "failed", (), f"restarted too often without an order: {why}"
            self._stop_all()
            return
        if not chosen:
            self._wait_for_nodes(why, now)
            return
        if begins and self.state != "waiting":
            self.generation = max(self.generation + 1, self.next_generation)
        self.target, self.next_members, self.state = chosen, None, "forming"
        self.members = chosen
        self.deadlines["gather"] = now + GATHER_S
        self._stop_all()
        self._form_if_ready(now)

    def _stop_all(self) -> None:
        for node, peer in self.peers.items():
            if not peer.is_waiting:
                self._send(node, restart=peer.generation)
            elif self.state == "failed":
                self._send(node, fail=self.why)
            if peer.is_leaving:
                self._send(node, leave=True)

    def _wait_for_nodes(self, why: str, now: float) -> None:
        self.target, self.next_members, self.members = (), None, ()
        self.state, self.generation = "waiting", self.generation + 1
        self.why = f"{why}; {self._why_too_few(self.peers.values())}"
        self.deadlines["waiting"] = now + WAITING_S
        self._stop_all()
        self._form_if_ready(now)

    def _form_if_ready(self, now: float) -> None:
        """Form the generation if all its nodes wait."""
        if self.state == "waiting":
            self._form_from_waiting(now)
        elif self.target and all(node in self.peers and self.peers[node].is_waiting for node in self.target):
            ranked = in_order(self.peers[node] for node in self.target)
            self.members, self.target = tuple(peer.node for peer in ranked), ()
            self.deadlines.pop("gather", None)
            self.deadlines["start"] = now + START_S
            self.step = None
            master = ranked[0]
            common = {"generation": self.generation, "world": len(ranked), "members": list(self.members)}
            for rank, peer in enumerate(ranked):
                peer.is_waiting, peer.generation = False, self.generation
                peer.forget_generation()
                form = {**common, "rank": rank, "address": master.address, "port": master.port}
                self._send(peer.node, form=form)

    def _form_from_waiting(self, now: float) -> None:
        """Form a generation from waiting nodes: the first of base nodes only, others with at least one base node."""
        ready = [one for one in self.peers.values() if one.is_waiting and not one.is_leaving]
        ready = [one for one in ready if one.is_base or (self.generation and not self.trained)]
        if len(ready) < self.base or not any(one.is_base for one in ready):
            self.deadlines.setdefault("waiting", now + FIRST_S)
            self.why = self._why_too_few(ready)
            return
        chosen = fitting(ready, self.base, self.sizes)
        self.generation += 1
        self.deadlines.pop("waiting", None)
        self.why = f"{len(chosen)} nodes joined"
        self.state, self.target, self.members, self.stopped_at = "forming", chosen, chosen, now
        self._form_if_ready(now)

    def _may_take_part(self, node: str) -> bool:
        peer = self.peers.get(node)
        return peer is not None and (peer.is_base or not self.trained)

    def _why_too_few(self, here: Iterable[Peer]) -> str:
        nodes = list(here)
        if len(nodes) >= self.base and not any(peer.is_base for peer in nodes):
            return "none of the base's own nodes has joined: waiting for one"
        return f"{len(nodes)} of at least {self.base} nodes have joined: waiting for more"

    def _members_to_be(self) -> tuple[str, ...]:
        return self.members if self.next_members is None else self.next_members

    def _survivors(self) -> tuple[str, ...]:
        wanted = self.target or self._members_to_be()
        return tuple(node for node in wanted if node in self.peers and node not in self.missing)

    def _on_lost_node(self, node: str, now: float, how: str) -> None:
        if node in self.target:
            self._gather(tuple(one for one in self.target if one != node), now, f"{node} {how}")
        elif node in self.members:
            self.missing.add(node)
            self.deadlines.setdefault("lost", now + LOST_S)

    def _begin_if_behind(self, now: float) -> None:
        """Begin the next generation if a member does not run the present one; first wait for missing members."""
        if self._first_behind and not self.missing:
            self._go_on_with_those_here(now)
        elif self._first_behind:
            self.deadlines.setdefault("lost", now + LOST_S)

    def _go_on_with_those_here(self, now: float) -> None:
        lost = ", ".join(sorted(self.missing))
        self._gather(
            self._survivors(), now, f"lost {lost}" if lost else f"{self._first_behind} started its processes again"
        )

    @property
    def _first_behind(self) -> str:
        """The first member that does not run the present generation; empty if none, or if a new one forms."""
        if self.target or self.state not in ("running", "saving", "forming"):
            return ""
        here = (node for node in self.members if node in self.peers)
        return next((node for node in here if self.peers[node].generation < self.generation), "")

    def expect_all(self, now: float) -> None:
        self.missing = {node for node in self.members if node not in self.peers}
        if self.missing:
            self.deadlines["lost"] = now + RESTORE_S

    def _rule_on_failure(self, now: float) -> None:
        """Rule on failed processes: continue without a lost node or a replica that failed first; else the run fails."""
        first = self.peers.get(self.failed_first)
        if self.missing:  # after the coordinator's restart, too: a node that is not back is the likelier cause
            self._go_on_with_those_here(now)
        elif first is not None and not first.is_base and first.outcome == "failed":
            first.is_leaving = True
            self._gather(self._survivors(), now, f"the processes of replica {first.node} failed: goes on without")
        else:
            self.state, self.why = "failed", "processes failed and no node was lost"
            self._send_verdicts()
            for peer in self.peers.values():
                self._stop_if_saved(peer)

    def _stop_if_saved(self, peer: Peer) -> None:
        """Stop a peer that saved: it waits for a next generation, which does not come."""
        if peer.saved and peer.is_at_rest and not peer.outcome:
            self._send(peer.node, restart=peer.generation)

    def _tick_after_end(self, late: Iterable[str]) -> None:
        if "lost" in late:
            self.missing.clear()
        if {"lost", "finish"} & set(late):
            self._send_verdicts_if_finished()

    def _send_verdicts_if_finished(self) -> None:
        """Send the verdicts when no node works any more: others may still write after the first one is done."""
        if not any(self._still_works(node) for node in self.members):
            self.deadlines.pop("finish", None)
        if "finish" not in self.deadlines:
            self._send_verdicts()

    def _still_works(self, node: str) -> bool:
        peer = self.peers.get(node)
        return node in self.missing if peer is None else not (peer.outcome or peer.is_waiting)

    def _send_verdicts(self) -> None:
        for node, peer in self.peers.items():
            if peer.outcome:
                self._send(node, verdict=peer.outcome)

    def _send(self, node: str, **line: Any) -> None:
        self.outbox.append((node, line))
