"""The head's view of every agent: one frozen view per node, kept current by its connection, read by the cycle."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace

from steward.adapters.wire.messages import asked_at
from steward.model.deep import DeepReport
from steward.model.elastic import Activity, ElasticWord
from steward.model.health import Finding, Incarnation, Report
from steward.model.ids import JobId, NodeName
from steward.model.job_report import Progress, TaskExit
from steward.model.job_sight import StepSight
from steward.model.mend import MendReport
from steward.model.observed import AgentDetail, AgentView
from steward.model.setup import SetupReport
from steward.model.witness import PeerWord, WitnessSeen

_SUPERSEDED_KEPT = 8
_DEEP_KEPT = 4
_BUNDLES_KEPT = 8
_PEERS_KEPT = 8
_EXITS_KEPT = 64
_RUNS_KEPT = 64


class Superseded(Exception):
    """A connection as a machine that was replaced as this node; the newer machine keeps the name."""


class Roster:
    """The views of all agents.

    Thread-safe. Times are Unix seconds. `last_heard` of a connected agent may lag by some heartbeats.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._views: dict[NodeName, AgentView] = {}
        self._details: dict[NodeName, AgentDetail] = {}
        self._superseded: dict[NodeName, OrderedDict[Incarnation, None]] = {}

    def views(self) -> Mapping[NodeName, AgentView]:
        """Return the view of every agent."""
        with self._lock:
            return dict(self._views)

    def details(self) -> Mapping[NodeName, AgentDetail]:
        """Return version and clock skew of every agent."""
        with self._lock:
            return dict(self._details)

    def view(self, node: NodeName) -> AgentView | None:
        """Return the view of one agent; None if the node has none."""
        return self._views.get(node)

    def joined(
        self,
        node: NodeName,
        incarnation: Incarnation,
        version: str,
        now: float,
        *,
        address: str = "",
        restored: bool = False,
    ) -> AgentView | None:
        """Note an accepted connection; return the view of the live agent that it replaces; None if it replaces none.

        The replaced agent is of another incarnation. Raises Superseded for an incarnation that was replaced before,
        unless it is `restored`: the agent that replaced it was not on the node's own address.
        """
        with self._lock:
            if restored:
                self._superseded.get(node, OrderedDict()).pop(incarnation, None)
            if incarnation in self._superseded.get(node, ()):
                raise Superseded(f"{node}: {incarnation.instance} (boot {incarnation.boot}) was replaced before")
            before = self._views.get(node)
            self._details[node] = AgentDetail(version=version)
            if before is not None and before.incarnation == incarnation:
                self._views[node] = replace(
                    before,
                    connected=True,
                    last_heard=now,
                    late=False,
                    joined_at=now,
                    lost_at=None,
                    lost_why="",
                    leaves=False,
                    host_ends=False,
                    fell_silent=False,
                    witness=None,
                    address=address,
                )
                return None
            self._views[node] = AgentView(
                node=node, incarnation=incarnation, connected=True, last_heard=now, joined_at=now, address=address
            )
            if before is None or before.incarnation is None:
                return None
            self._supersede(node, before.incarnation)
            return before if before.is_heard else None

    def heard(self, node: NodeName, at: float, skew_s: float | None) -> None:
        """Note that the agent was last heard at `at`, and is not late."""
        with self._lock:
            self._views[node] = replace(self._views[node], last_heard=at, late=False)
            self._details[node] = replace(self._details[node], skew_s=skew_s)

    def late(self, node: NodeName, *, heard: float) -> None:
        """Note that a beat is overdue."""
        with self._lock:
            self._views[node] = replace(self._views[node], last_heard=heard, late=True)

    def lost(
        self,
        node: NodeName,
        why: str,
        now: float,
        *,
        heard: float,
        leaves: bool = False,
        host_ends: bool = False,
        fell_silent: bool = False,
        is_sent_away: bool = False,
    ) -> None:
        """Note that the connection of the node's agent ended at `now`, and why; the flags are those of `AgentView`."""
        with self._lock:
            view = self._views[node]
            self._views[node] = replace(
                view,
                last_heard=heard,
                connected=False,
                lost_at=now,
                lost_why=why,
                leaves=leaves,
                host_ends=host_ends,
                fell_silent=fell_silent,
                dialled_at=now if is_sent_away else view.dialled_at,
            )

    def note_dialled(self, node: NodeName, now: float) -> None:
        """Note that the node's agent connected and proved itself, but was sent away."""
        with self._lock:
            self._views[node] = replace(self._view_of(node), dialled_at=now)

    def take_report(self, node: NodeName, report: Report, now: float) -> bool:
        """Take the agent's report; return whether it is news. An answer to a `check now` always is."""
        with self._lock:
            view = self._views[node]
            asked = asked_at(report)
            self._views[node] = replace(
                view,
                findings=report.findings,
                passed=report.passed,
                passed_since=report.passed_since,
                skipped=report.skipped,
                hardware=report.hardware,
                versions=report.versions,
                reported_at=now,
                checked_at=max(view.checked_at, min(asked or 0.0, now)),
            )
            return (
                asked is not None
                or not view.reported_at
                or _without_times(report.findings) != _without_times(view.findings)
            )

    def take_setup(self, node: NodeName, report: SetupReport) -> bool:
        """Take the state of the node's setup; return whether it is news. A repeated report keeps its first time."""
        with self._lock:
            view = self._views[node]
            if view.setup is not None and replace(report, at=view.setup.at) == view.setup:
                return False
            self._views[node] = replace(view, setup=report)
            return True

    def take_mend(self, node: NodeName, report: MendReport) -> bool:
        """Take the end of a light repair of the node; return whether it is news."""
        with self._lock:
            view = self._views[node]
            if view.mend is not None and replace(report, at=view.mend.at) == view.mend:
                return False
            self._views[node] = replace(view, mend=report)
            return True

    def take_deep_report(self, node: NodeName, report: DeepReport) -> bool:
        """Take the results of a deep check so far; return whether they are news. Mere progress is not."""
        with self._lock:
            view = self._views[node]
            before = next((one for one in view.deep if one.run == report.run), None)
            others = tuple(one for one in view.deep if one.run != report.run)
            self._views[node] = replace(view, deep=(*others, report)[-_DEEP_KEPT:])
            return before is None or report.is_done != before.is_done or len(report.measures) != len(before.measures)

    def take_exits(self, node: NodeName, exits: tuple[TaskExit, ...]) -> bool:
        """Take the tasks that ended badly on the node; return whether one is news.

        A repeated task keeps its first time.
        """
        with self._lock:
            view = self._views[node]
            known = {replace(one, at=0.0) for one in view.exits}
            new = tuple(one for one in exits if replace(one, at=0.0) not in known)
            if new:
                self._views[node] = replace(view, exits=(*view.exits, *new)[-_EXITS_KEPT:])
            return bool(new)

    def take_progress(self, node: NodeName, jobs: tuple[Progress, ...]) -> bool:
        """Take the progress of the node's jobs; return whether it is news (`_milestones`)."""
        with self._lock:
            view = self._views[node]
            self._views[node] = replace(view, progress=jobs)
            return _milestones(jobs) != _milestones(view.progress)

    def take_sights(self, node: NodeName, steps: tuple[StepSight, ...]) -> bool:
        """Take what the ranks of the node's steps do; return whether it is news: some do no work, or did none."""
        with self._lock:
            view = self._views[node]
            self._views[node] = replace(view, sights=steps)
            return any(one.is_notable for one in (*view.sights, *steps))

    def take_elastic_word(self, node: NodeName, word: ElasticWord) -> bool:
        """Take the agent's report on an elastic run; return whether it is news. A mere step is not."""
        with self._lock:
            view = self._views[node]
            before = next((one for one in view.elastic if one.run == word.run), None)
            others = tuple(one for one in view.elastic if one.run != word.run)[-(_RUNS_KEPT - 1) :]
            self._views[node] = replace(view, elastic=(*others, word))
            return before is None or _without_progress(before) != _without_progress(word)

    def note_bundle(self, node: NodeName, bundle: str) -> None:
        """Note that the node's part of a bundle has arrived in full."""
        with self._lock:
            view = self._views[node]
            others = tuple(name for name in view.bundles if name != bundle)
            self._views[node] = replace(view, bundles=(*others, bundle)[-_BUNDLES_KEPT:])

    def take_witness(self, seen: Mapping[NodeName, WitnessSeen]) -> None:
        """Take the second witness's results, also for a node whose agent never connected."""
        with self._lock:
            for node, result in seen.items():
                self._views[node] = replace(self._view_of(node), witness=result)

    def take_peer_word(self, node: NodeName, word: PeerWord) -> bool:
        """Take what another node's agent saw of the node; return whether the node has a view."""
        with self._lock:
            view = self._views.get(node)
            if view is None:
                return False
            others = tuple(one for one in view.peers if one.by != word.by)
            self._views[node] = replace(view, peers=(*others, word)[-_PEERS_KEPT:])
            return True

    def _view_of(self, node: NodeName) -> AgentView:
        """Return the node's view; an empty one if it has none."""
        empty = AgentView(node=node, incarnation=None, connected=False, last_heard=0.0)
        return self._views.get(node, empty)

    def _supersede(self, node: NodeName, old: Incarnation) -> None:
        """Note that the incarnation was replaced on its node."""
        kept = self._superseded.setdefault(node, OrderedDict())
        kept[old] = None
        if len(kept) > _SUPERSEDED_KEPT:
            kept.popitem(last=False)


def _milestones(jobs: tuple[Progress, ...]) -> list[tuple[JobId, int, bool]]:
    """Return for each job what is news if it changes: its run, and whether a step came."""
    return [(one.job, one.restart, one.step is None) for one in jobs]


def _without_times(findings: tuple[Finding, ...]) -> list[Finding]:
    """Return the findings without their times, which are no news."""
    return [replace(finding, at=0.0, passed_at=0.0, good_since=0.0) for finding in findings]


def _without_progress(word: ElasticWord) -> ElasticWord:
    """Return the report without its times and, while the run is running, without its step."""
    step = word.step if word.state is not Activity.RUNNING else None
    return replace(word, step=step, saved_step=None, consumed=None, at=0.0)
