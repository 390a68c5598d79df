"""Gather the facts for `steward doctor`. A failed look becomes a line, not an exception."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steward.adapters.owners import settings_problem
from steward.adapters.slurm.config import SlurmConfig
from steward.adapters.slurm.include import IncludeFile
from steward.head.origin import Origin
from steward.model.desired import Desired
from steward.model.events import Event
from steward.model.ids import NodeName
from steward.model.leadership import Heads
from steward.model.node_names import fold
from steward.model.observed import AgentDetail, AgentView, Freshness
from steward.model.repair_policy import RepairPolicy
from steward.model.settings import Problem, Settings
from steward.model.text import PAUSED, REPORT_ONLY
from steward.policy.draft import Draft
from steward.policy.leaks import CURE, leaks
from steward.ports import Clock, MungePort, ProviderPort, SlurmPort, StorePort
from steward.views.expected_agents import expected_agents
from steward.workflows.doctor import (
    DoctorLine,
    bad,
    judge_addresses,
    judge_agents,
    judge_channels,
    judge_dynamic,
    judge_fit,
    judge_heads,
    judge_include,
    judge_lent,
    judge_loaded,
    judge_reread,
    judge_shim,
    judge_slurm,
    judge_topology,
    ok,
    warn,
)
from steward.workflows.snapshot import HeadStandstill, Snapshot

LOG = "`journalctl -u stewardd -n 50` says why"
"""The remedy where only the head's log has the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityPlace:
    """The places for partitions of API groups: our include file, and partitions lent by the site.

    `dynamic`: nodes may register themselves.
    """

    include: IncludeFile | None = None
    lent: frozenset[str] = frozenset()
    dynamic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """The gatherer and judge of the facts. `examine` may take as long as Slurm's commands do."""

    version: str
    file: Path
    """The settings file."""
    settings: Settings
    """The settings in force."""
    reread: Callable[[], Settings]
    """Returns the settings that the file holds now. Raises SettingsError."""
    contradictions: Callable[[], Sequence[Problem]]
    """Asks Slurm, and returns the contradictions between it and the settings in force."""
    clock: Clock
    slurm: SlurmPort
    reader_problem: Callable[[], str]
    """Returns why Slurm is read through its commands; empty if it is read through its library."""
    config: SlurmConfig
    munge: MungePort
    store: StorePort
    provider: ProviderPort | None
    latest: Callable[[], Snapshot | None]
    standstill: Callable[[], HeadStandstill | None]
    views: Callable[[], Mapping[NodeName, AgentView]]
    details: Callable[[], Mapping[NodeName, AgentDetail]]
    nodes_at: Callable[[Origin], frozenset[NodeName]]
    """Returns the nodes whose agents speak from addresses of this origin."""
    capacity: CapacityPlace
    rules: RepairPolicy
    want: Desired
    heads: Callable[[], Heads | None] = lambda: None
    """Returns the heads of the cluster; None for a head alone."""

    def examine(self) -> list[DoctorLine]:
        """Return the lines of all topics."""
        looks: tuple[tuple[str, str, Callable[[], list[DoctorLine]]], ...] = (
            ("slurm", "check cluster.slurm_conf and that slurmctld runs", self._slurm),
            ("picture", LOG, self._picture),
            ("settings", "let SlurmUser read the file: owner root, mode 0644 or 0640", self._settings),
            ("mode", "correct repair.mode in the settings", self._mode),
            ("munge", "start munged; cluster.munge_socket must be its socket", self._munge),
            ("heads", LOG, lambda: judge_heads(self.heads(), self.version)),
            ("store", "make head.state_dir writable for SlurmUser, with free space", self._store),
            ("provider", "check the [provider.*] table of the settings", self._provider),
            ("agents", LOG, self._agents),
            ("slurm.conf", "check that slurmctld runs", self._slurm_conf),
            ("partitions", "check capacity.slurm_include and that slurmctld runs", self._capacity),
        )
        return [line for topic, remedy, look in looks for line in _safely(topic, remedy, look)]

    def _slurm(self) -> list[DoctorLine]:
        said = self.slurm.describe()
        if self.reader_problem():
            # the library fails, too, while slurmctld is away
            remedy = "if `scontrol ping` says UP: install the packages that were built for this Slurm, or `make shim`"
            return [warn("slurm", said, remedy)]
        return [ok("slurm", said)]

    def _picture(self) -> list[DoctorLine]:
        latest = self.latest()
        if (standstill := self.standstill()) is not None:
            return [
                bad(
                    "decisions",
                    standstill.text(self.clock.now()),
                    f"{LOG}; check `df`, and which process has its store open",
                )
            ]
        if latest is None:
            return [bad("picture", "the head has not finished its first look", LOG)]
        age = self.clock.now() - latest.at
        if latest.seen.slurm is not Freshness.FRESH:
            remedy = f"`scontrol ping`: start slurmctld if it is down; else {LOG}"
            return [bad("picture", f"the picture of Slurm is {latest.seen.slurm.value}", remedy)]
        lines = [ok("picture", f"{age:.1f} s old, taken in {latest.phases.observe_s * 1e3:.0f} ms")]
        if latest.memory.paused:
            lines.append(warn("actions", *PAUSED.split(": ", 1)))
        if why := next(iter(latest.seen.unread.values()), ""):
            remedy = (
                "let stewardd, as SlurmUser, read StateSaveLocation; until then only agents tell which jobs opted in"
            )
            lines.append(warn("jobs", f"{len(latest.seen.unread)} running jobs: {why}", remedy))
        if lost := leaks(latest.seen):
            said = f"{fold(lost)} idle, but Slurm counts their GRES as used: no job that asks for them starts there"
            lines.append(bad("gres", said, CURE))
        return lines

    def _settings(self) -> list[DoctorLine]:
        if why := settings_problem(self.file):
            return [bad("settings", f"{self.file}: {why}", "no daemon starts with it: give it to root, 0644 or 0640")]
        latest = self.latest()
        channels = judge_channels(self.settings, latest.memory.groups) if latest else []
        found = [*judge_reread(self.file, self.settings, self.reread), *channels]
        return found or [ok("settings", f"{self.file} is in force, and changed by root alone")]

    def _mode(self) -> list[DoctorLine]:
        if self.rules.ask:
            return [ok("mode", "broken nodes are drained; each repair waits for `steward approve`")]
        if self.rules.act:
            return [ok("mode", "broken nodes are taken out and repaired")]
        remedy = 'set repair.mode = "ask" or "act" when the reports look right (`steward events` says what it would do)'
        return [warn("mode", f"{REPORT_ONLY.split(':')[0]}, which is how an install begins", remedy)]

    def _munge(self) -> list[DoctorLine]:
        uid, payload = self.munge.decode(self.munge.encode(b"steward doctor"))
        if payload != b"steward doctor":
            return [bad("munge", "a credential came back with other contents", "`systemctl restart munge` here")]
        return [ok("munge", f"credentials can be made and read, as uid {uid}")]

    def _store(self) -> list[DoctorLine]:
        self.store.add_events([Event(at=self.clock.now(), kind="head.examined", text="steward doctor was asked")])
        return [ok("store", "can be written")]

    def _provider(self) -> list[DoctorLine]:
        if self.provider is None:
            return [warn("provider", "no group of nodes is configured: nothing is repaired", "add a [[groups]] table")]
        found = self.provider.instances()
        return [ok("provider", f"{self.provider.describe()}; {len(found)} instances")]

    def _agents(self) -> list[DoctorLine]:
        nodes = self._nodes_with_agents()
        found = judge_agents(nodes, self.views(), self.details(), self.version, is_new=self._is_new())
        places = (self.nodes_at(origin) & nodes for origin in (Origin.STRANGE, Origin.UNKNOWN))
        return [*found, *judge_addresses(*places)]

    def _nodes_with_agents(self) -> frozenset[NodeName]:
        """Return Slurm's nodes whose agents are expected, or connected all the same."""
        latest = self.latest()
        if latest is None:
            return frozenset()
        heard = {name for name, view in self.views().items() if view.connected and name in latest.seen.nodes}
        return expected_agents(Draft(latest.seen, self.want, latest.memory, latest.at)) | heard

    def _slurm_conf(self) -> list[DoctorLine]:
        config, loaded = self.config.config(), judge_loaded(self._nodes_with_agents(), self.views())
        shim = loaded or judge_shim(*self.config.plugstack(config), is_new=self._is_new())
        latest = self.latest()
        topology = judge_topology(latest.seen.nodes if latest else (), self.config.topology(config))
        return [*judge_fit(self.contradictions()), *shim, *judge_slurm(config), *topology]

    def _is_new(self) -> bool:
        """Return whether no agent has ever connected, to this head or an earlier one."""
        latest = self.latest()
        return latest is not None and not self.views() and not latest.memory.agents

    def _capacity(self) -> list[DoctorLine]:
        lines: list[DoctorLine] = []
        if file := self.capacity.include:
            lines += judge_include(file.line, file.is_included(), file.why_not_writable())
        if self.capacity.lent:
            lines += judge_lent(self.capacity.lent, self.slurm.partitions())
        return lines + (judge_dynamic(self.config.config()) if self.capacity.dynamic else [])


def _safely(topic: str, remedy: str, look: Callable[[], list[DoctorLine]]) -> list[DoctorLine]:
    """Return the lines of a look; if it fails, one line about the failure."""
    try:
        return look()
    except Exception as error:
        return [bad(topic, str(error) or type(error).__name__, remedy)]
