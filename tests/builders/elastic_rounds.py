"""Agents of an elastic run for its coordinator's rounds."""

from typing import Any

from steward.elastic.peer import Peer
from steward.elastic.run import CoordinatedRun

Line = dict[str, Any]


class Story:
    """Agents that do at once what they are told, and what they were told."""

    def __init__(self, base: int = 2, sizes: tuple[int, ...] = (2, 3, 4), grace_s: float = 30.0) -> None:
        self.run = CoordinatedRun(base=base, sizes=sizes, grace_s=grace_s)
        self.now = 100.0
        self.forms: list[tuple[str, Line]] = []
        self.told: list[tuple[str, Line]] = []
        self.stuck: set[str] = set()

    def come(self, *nodes: str, role: str = "base") -> None:
        for node in nodes:
            is_base = role == "base"
            self.run.join(Peer(node=node, is_base=is_base, is_first=is_base and node == "n1"), (), self.now)
            self.wait(node)

    def wait(self, node: str) -> None:
        self.run.wait(node, {"address": node, "port": 1}, self.now)
        self.hear()

    def hear(self) -> None:
        out, self.run.outbox = self.run.outbox, []
        for node, line in out:
            if "form" in line:
                self.forms.append((node, line["form"]))
            else:
                self.told.append((node, line))
            if (line.get("restart") or line.get("leave")) and node in self.run.peers and node not in self.stuck:
                if line.get("leave"):
                    self.run.lost(node, self.now)
                elif not self.run.peers[node].is_waiting:
                    self.wait(node)
        if self.run.outbox:
            self.hear()

    def say(self, node: str, what: str, **words: Any) -> None:
        self.run.handle_message(node, {"what": what, "generation": self.run.generation, "step": 1, **words}, self.now)
        self.hear()

    def save(self, *nodes: str) -> None:
        for node in nodes:
            self.say(node, "noticed")
            self.say(node, "saved", local_rank=0, step=7, consumed=70)

    def order(self, *members: str, grace_s: int = 30, generation: int = 0, patient: bool = False) -> None:
        wish = {"generation": generation or self.run.generation + 1, "members": list(members), "grace_s": grace_s}
        wish["patient"] = patient
        self.run.order(wish, self.now)
        self.hear()

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        self.run.tick(self.now)
        self.hear()

    def grown(self) -> "Story":
        """Four nodes, two of them a replica job's, train."""
        self.come("n1", "n2")
        self.come("n3", "n4", role="replica")
        self.say("n1", "step")
        self.order("n1", "n2", "n3", "n4")
        self.save("n1", "n2")
        self.say("n1", "step", step=8)
        assert self.shape() == ("running", 2, ("n1", "n2", "n3", "n4"))
        return self

    def begin_anew(self) -> None:
        """The coordinator dies; the next one knows generation and members, and the agents come back as they are."""
        old = self.run
        self.run = CoordinatedRun(base=old.base, sizes=old.sizes, grace_s=old.grace_s)
        self.run.generation, self.run.members = old.generation, old.members
        if old.generation and old.members:
            self.run.state = "running"
            self.run.expect_all(self.now)
        for was in old.peers.values():
            self.come_back(was)

    def come_back(self, was: Peer) -> None:
        """As its agent does: who it is, that it waits, what its processes said, how they ended."""
        forms = [form for node, form in self.forms if node == was.node and form["generation"] == was.generation]
        members = tuple(forms[-1]["members"]) if forms else ()
        first = was.is_base and was.is_first
        peer = Peer(
            node=was.node, is_base=was.is_base, is_first=first, generation=was.generation, is_leaving=was.is_leaving
        )
        self.run.join(peer, members, self.now)
        self.hear()
        if was.node not in self.run.peers:
            return
        if was.is_waiting:
            self.wait(was.node)
        for what in ("noticed",) * was.noticed + ("saved",) * len(was.saved):
            if was.node in self.run.peers:
                self.run.handle_message(was.node, {"what": what, "generation": was.generation}, self.now)
                self.hear()
        if was.outcome and was.node in self.run.peers:
            self.run.handle_end(was.node, was.outcome, self.now)
            self.hear()

    def shape(self) -> tuple[str, int, tuple[str, ...]]:
        return self.run.state, self.run.generation, self.run.members
