"""The composition root of the agent: the one place that picks its adapters."""

import os
import pwd
import random
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

from steward import __version__
from steward.adapters.clock import SystemClock
from steward.adapters.munge import Munge, ToldMunge
from steward.adapters.node.agentsock import ShimSocket, write_defaults, write_warning
from steward.adapters.node.elastic_start import ElasticStarter, address_towards
from steward.adapters.node.identity import Hardware, incarnation, node_name
from steward.adapters.node.jobs_here import JobsHere
from steward.adapters.node.mender import NodeMender
from steward.adapters.node.nvml import Nvml
from steward.adapters.node.probe import LocalProbes
from steward.adapters.node.setup_dir import Here, Starter
from steward.adapters.node.slurm_conf import conf_here
from steward.adapters.node.step_walk import StepWalk
from steward.adapters.node.stepds import Stepds
from steward.adapters.offload import Threads
from steward.adapters.proc import PLACES
from steward.adapters.service import host_ends, notifier
from steward.adapters.wire.frames import ALONE, DIAL_TIMEOUT_S, WITH_ALL, WITH_HOST, Channel, dial
from steward.adapters.wire.handshake import Hello, Terms, greet_head
from steward.adapters.wire.head_messages import HeadFollows
from steward.adapters.wire.seal import Sealer
from steward.adapters.witness import PortWitness
from steward.agent.agent import Agent
from steward.agent.briefing import Briefing, ResumeFactsCache
from steward.agent.catalogue import SiteCatalogue, built_in
from steward.agent.config import AgentConfig
from steward.agent.desk import Exits, JobDesk, MakeRoom
from steward.agent.elastic import Elastic
from steward.agent.job_folder import JobFolders
from steward.agent.job_orders import LostRunCleanup, Stacks
from steward.agent.job_watch import JobWatch
from steward.agent.kernel_watch import KernelWatch
from steward.agent.link import HeadLink
from steward.agent.log_watch import LogWatch
from steward.agent.looks import JobEyes, JobLogs, OutputEyes, PeerLook, SlurmLook, StepEyes
from steward.agent.mend import AfterMend, Mending
from steward.agent.munge_care import MungeCare
from steward.agent.opted import OptedBook, keep_tidy
from steward.agent.reception import DeepDesk, Reception, VerdictDesk
from steward.agent.senses import Senses
from steward.agent.setup import Setups
from steward.agent.sight_watch import SightWatch
from steward.agent.track import CheckMemory, Rounds, Track
from steward.checks.check import Check, Facts
from steward.checks.known import mode_of
from steward.model.health import Incarnation
from steward.model.ids import NodeName
from steward.model.setting_types import split_host_port
from steward.ports import Clock, MungePort, Permanent, PortError

_MUNGE_THREADS = 4
_LOOK_THREADS = 4
_STACKS_THREADS = 2
_OUTPUT_THREADS = 4
_FOLDER_THREADS = 4
_ELASTIC_THREADS = 4
_PEER_THREADS = 4
_DIAL_ONE_OF_TWO_S = 2.0
"""The time limit for a connection where there are two heads: the machine of this one may be gone."""


async def run_agent(config: AgentConfig, *, node: str) -> None:
    """Run the agent of this node until cancelled. Raises Permanent when the agent cannot start."""
    name = node_name(node or config.agent.node_name, conf_here(config.cluster.slurm_conf))
    config = config.for_node(name)
    who = incarnation(config.agent.instance_id_file, config.agent.boot_id_file)
    clock, opted = SystemClock(), OptedBook(config.agent.state_dir / f"opted-{name}.json", who.boot)
    munge = Munge(str(config.cluster.munge_socket or ""))
    care = MungeCare(config.agent.state_dir / f"munge-{name}.json", munge=munge, threads=Threads(1), clock=clock)
    told = ToldMunge(munge, care.no_answer)
    link = _link(config, name, who, clock, opted, told)
    slurm = SlurmLook(JobsHere(conf_here(config.cluster.slurm_conf)), Threads(_LOOK_THREADS))
    folders, past = JobFolders(config.agent.job_dir), ResumeFactsCache(link)
    elastic, letting_go = _elastic(config, name, link, slurm, folders), _letting_go(config, name, link, opted)
    room = letting_go.make_room
    desk = _desk(
        config, name, who, link, clock, opted=opted, slurm=slurm, past=past, folders=folders, runs=elastic, room=room
    )
    nvml, kernel = Nvml(), _kernel(config, name, who, clock)
    senses = _senses(config, name, link=link, clock=clock, who=who, nvml=nvml, kernel=kernel, munge=told)
    mending = _mending(config, name, who, link, clock, nvml=nvml, kernel=kernel, senses=senses)
    jobs = JobWatch(node=name, opted=opted, eyes=JobEyes(folders), head=link, clock=clock, threads=lambda: Threads(1))
    sight = _sight(config, name, link, nvml)
    agent = Agent(
        node=name,
        link=link,
        desk=desk,
        past=past,
        senses=senses,
        letting_go=letting_go,
        jobs=jobs,
        sight=sight,
        stacks=_stacks(name, link, opted, folders, jobs),
        setups=_setups(config, name, who, link, clock),
        deep=(deep := _deep(config, name, who, link, clock)),
        mending=mending,
        peers=PeerLook(PortWitness().look, head=link, threads=Threads(_PEER_THREADS)),
        elastic=elastic,
        notifier=notifier(),
    )
    watches = (jobs.run(), sight.run(), *_munge_watch(config, care, mending))
    await agent.run(_shims(config, desk, deep, senses).run(), keep_tidy(opted, folders, slurm, name, clock), *watches)


def _link(
    config: AgentConfig, node: NodeName, who: Incarnation, clock: Clock, opted: OptedBook, munge: ToldMunge
) -> HeadLink:
    word = partial(_last_word, Stepds(config.cluster.slurm_conf, node=node))
    sealer = Sealer(munge, _trusted(config.cluster.slurm_user), Threads(_MUNGE_THREADS))
    heads = {head: _Connect(config, head, node, who, opted, sealer) for head in config.agent.head}
    return HeadLink(heads, clock=clock, rng=random.SystemRandom(), last_word=word)


def _shims(config: AgentConfig, desk: JobDesk, deep: DeepDesk, senses: Senses) -> ShimSocket:
    verdict = VerdictDesk(findings=senses.findings, known=lambda: senses.is_known, mode=mode_of(config.checks))
    return ShimSocket(config.agent.socket, Reception(desk=desk, deep=deep, verdict=verdict).serve)


def _munge_watch(config: AgentConfig, care: MungeCare, mending: Mending) -> tuple[Coroutine[Any, Any, None], ...]:
    # munge.service is the munged of the library's default socket; the unit of a munged on another socket is not known
    return () if config.cluster.munge_socket else (care.run(mending.restart),)


_ALL_TOLD_S = 0.5
"""A shutdown tells one process after the other to end; on a busy machine the agent may hear it first, and look around
before the slurmstepds are told."""


def _last_word(stepds: Stepds) -> float:
    until = time.monotonic() + _ALL_TOLD_S
    are_told = stepds.are_told_to_end()  # asked first: the slurmstepds end with their jobs
    if host_ends():
        return WITH_HOST
    return WITH_ALL if are_told or stepds.are_told_to_end(until - time.monotonic()) else ALONE


def _desk(
    config: AgentConfig,
    node: NodeName,
    who: Incarnation,
    link: HeadLink,
    clock: Clock,
    *,
    opted: OptedBook,
    slurm: SlurmLook,
    past: ResumeFactsCache,
    folders: JobFolders,
    runs: Elastic,
    room: MakeRoom,
) -> JobDesk:
    return JobDesk(
        node=node,
        incarnation=who,
        clock=clock,
        head=link,
        opted=opted,
        own_look=slurm,
        hold_head_absent_s=config.agent.hold_head_absent_s,
        trusted=frozenset({0, os.geteuid()}),
        briefing=Briefing(
            folders,
            past,
            Threads(_FOLDER_THREADS),
            warning=lambda: link.warning,
            left_behind=Stepds(config.cluster.slurm_conf, node=node).left_behind,
        ),
        exits=Exits(node, link, clock),
        elastic=runs,
        outputs=JobLogs(opted, clock, lambda: Threads(_OUTPUT_THREADS)),
        make_room=room,
    )


def _letting_go(config: AgentConfig, node: NodeName, link: HeadLink, opted: OptedBook) -> LostRunCleanup:
    stepds = Stepds(config.cluster.slurm_conf, node=node)
    return LostRunCleanup(stepds, opted=opted, skew_s=lambda: link.skew_s, threads=lambda: Threads(PLACES))


def _elastic(config: AgentConfig, node: NodeName, link: HeadLink, slurm: SlurmLook, folders: JobFolders) -> Elastic:
    start, path = ElasticStarter(conf_here(config.cluster.slurm_conf)), config.agent.state_dir / f"elastic-{node}.json"
    way = partial(address_towards, config.heads)
    return Elastic(
        node=node,
        address=way,
        head=link,
        bases=slurm,
        start=start,
        folder=folders.folder,
        path=path,
        threads=lambda: Threads(_ELASTIC_THREADS),
    )


def _mending(
    config: AgentConfig,
    node: NodeName,
    who: Incarnation,
    link: HeadLink,
    clock: Clock,
    *,
    nvml: Nvml,
    kernel: KernelWatch,
    senses: Senses,
) -> Mending:
    after = AfterMend(forget=kernel.forget, start_anew=senses.start_anew)
    mender = NodeMender(units=config.agent.restart_units, let_go=nvml.away)
    state = config.agent.state_dir / f"mend-{node}.json"
    return Mending(state, incarnation=who, head=link, mender=mender, after=after, threads=Threads(1), clock=clock)


def _sight(config: AgentConfig, node: NodeName, link: HeadLink, nvml: Nvml) -> SightWatch:
    probes = LocalProbes(skew_s=lambda: link.skew_s, proc=config.agent.proc_dir, sys=config.agent.sys_dir, nvml=nvml)
    eyes = StepEyes(StepWalk(Stepds(config.cluster.slurm_conf, node=node)), probes.look)
    logs = LogWatch(OutputEyes(), threads=lambda: Threads(1))
    return SightWatch(node=node, eyes=eyes, head=link, threads=lambda: Threads(PLACES), logs=logs)


def _stacks(node: NodeName, link: HeadLink, opted: OptedBook, folders: JobFolders, jobs: JobWatch) -> Stacks:
    pool = partial(Threads, _STACKS_THREADS)
    return Stacks(node=node, opted=opted, folders=folders, head=link, threads=pool, progress=jobs.frames)


def _deep(config: AgentConfig, node: NodeName, who: Incarnation, link: HeadLink, clock: Clock) -> DeepDesk:
    return DeepDesk(
        node=node,
        incarnation=who,
        clock=clock,
        head=link,
        trusted=_trusted(config.cluster.slurm_user),
        path=config.agent.state_dir / f"deep-{node}.json",
    )


def _setups(config: AgentConfig, node: NodeName, who: Incarnation, link: HeadLink, clock: Clock) -> Setups:
    table = config.agent
    head, _ = config.heads[0]
    return Setups(
        table.setup_dir,
        here=Here(node=node, incarnation=who, head=head, config_dir=table.config_dir, log=table.setup_log),
        head=link,
        start=Starter(),
        threads=Threads(1),
        clock=clock,
    )


def _kernel(config: AgentConfig, node: NodeName, who: Incarnation, clock: Clock) -> KernelWatch:
    state = config.agent.state_dir / f"kernel-{node}.json"
    return KernelWatch(config.agent.kernel_log, state=state, incarnation=who, clock=clock, limits=config.checks)


def _senses(
    config: AgentConfig,
    node: NodeName,
    *,
    who: Incarnation,
    link: HeadLink,
    clock: Clock,
    nvml: Nvml,
    kernel: KernelWatch,
    munge: MungePort,
) -> Senses:
    limits = config.checks
    facts = Facts(node=node, limits=limits, slurm_conf=conf_here(config.cluster.slurm_conf))
    probes = LocalProbes(
        skew_s=lambda: link.skew_s,
        proc=config.agent.proc_dir,
        sys=config.agent.sys_dir,
        munge=lambda: munge,
        nvml=nvml,
    )
    memory = CheckMemory(config.agent.state_dir / f"checks-{node}.json", incarnation=who, clock=clock)

    def track(check: Check) -> Track:
        return Track(
            check,
            facts=facts,
            probes=probes,
            clock=clock,
            health=config.health,
            interval_s=config.agent.check_interval_s,
            memory=memory,
        )

    results = config.agent.state_dir / f"results-{node}"
    return Senses(
        built_in=built_in(limits),
        site=SiteCatalogue(limits, config.agent.site_checks_dir, results_dir=results),
        track=track,
        watches=() if limits.modes.get("kernel_log") == "off" else (kernel,),
        post=link.post,
        next_list=partial(Rounds(node, config.agent.check_interval_s).after, every_s=config.agent.check_interval_s),
        hardware=Hardware(config.agent.board_serial_file, lambda: nvml.uuids),
    )


class _Connect:
    """The link's way to one head: name lookup, TCP, handshake."""

    def __init__(
        self, config: AgentConfig, head: str, node: NodeName, who: Incarnation, opted: OptedBook, sealer: Sealer
    ) -> None:
        self._sealer = sealer
        self._head = head
        self._within_s = DIAL_TIMEOUT_S if len(config.agent.head) == 1 else _DIAL_ONE_OF_TWO_S
        self._threads = Threads(1)
        self._node = node
        self._who = who
        self._opted = opted
        self._socket = config.agent.socket

    async def __call__(self) -> tuple[Channel, Terms]:
        reader, writer = await dial(*split_host_port(self._head), self._threads, within_s=self._within_s)
        hello = Hello(node=self._node, incarnation=self._who, version=__version__, opted=self._opted.all())
        try:
            channel, terms = await greet_head(reader, writer, self._sealer, hello)
        except HeadFollows:
            writer.transport.abort()
            raise
        except PortError as error:
            writer.transport.abort()
            raise type(error)(f"the head at {self._head}: {error}") from None
        except BaseException:
            writer.transport.abort()
            raise
        write_defaults(self._socket.parent, terms.defaults)
        write_warning(self._socket.parent, terms.warning)
        return channel, terms


def _trusted(slurm_user: str) -> frozenset[int]:
    """Return the uids that the head may have: root, SlurmUser and the agent's own user."""
    try:
        return frozenset({0, os.geteuid(), pwd.getpwnam(slurm_user).pw_uid})
    except KeyError:
        raise Permanent(f"cluster.slurm_user = {slurm_user!r}: no such user on this node") from None
