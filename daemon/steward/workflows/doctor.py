"""Judge the facts of `steward doctor`. Each line says how one thing is and, if it is not well, what to do."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from steward.checks.slurm_node import SHIM, SHIM_EVERY_S
from steward.model.ids import NodeName
from steward.model.leadership import Heads, OtherHead
from steward.model.node_names import expand_nodes, fold
from steward.model.observed import REFUSED_BY_AGENT, AgentDetail, AgentView
from steward.model.settings import Problem, Settings, SettingsError
from steward.model.text import local_time, printable

_PLACES = "partitions"
_TOPOLOGY = "topology"
_TOPOLOGY_NODES = re.compile(r"\bNodes=([^\s(]+)")
_TREE_WIDTH = 65533
_CONF = "slurm.conf"
_MIN_JOB_AGE_S = 60
_SKEW_S = 1.0
_HEADS_APART_S = 5.0
"""More than it takes until a renewed lease is seen."""
_LONGEST = 300
"""The most characters of a list of nodes."""


class Health(Enum):
    """The state of a judged thing."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorLine:
    """One judged thing. `remedy` is empty if nothing needs to be done."""

    topic: str
    health: Health
    text: str
    remedy: str = ""


def ok(topic: str, text: str) -> DoctorLine:
    """Return a line for a thing that is well."""
    return DoctorLine(topic=topic, health=Health.OK, text=text)


def warn(topic: str, text: str, remedy: str) -> DoctorLine:
    """Return a line for a thing that may cause trouble."""
    return DoctorLine(topic=topic, health=Health.WARN, text=text, remedy=remedy)


def bad(topic: str, text: str, remedy: str) -> DoctorLine:
    """Return a line for a thing that does not work."""
    return DoctorLine(topic=topic, health=Health.BAD, text=text, remedy=remedy)


def judge_reread(file: Path, before: Settings, reread: Callable[[], Settings]) -> list[DoctorLine]:
    """Judge whether the file still holds the settings that the head started with."""
    try:
        changed = list(_changed("", before.model_dump(), reread().model_dump()))
    except SettingsError as error:
        problems = "; ".join(map(str, error.problems))
        text = f"{file} was changed, and stewardd does not start again with it: {problems}"
        return [bad("settings", text, "correct the file; `steward config check` says when it is well")]
    if not changed:
        return []
    agents = " here, and steward-agent on the nodes" if any(key.startswith(_OF_AGENTS) for key in changed) else ""
    text = f"{file} was changed since stewardd started; not yet in force: {', '.join(changed)}"
    return [warn("settings", text, f"`systemctl restart stewardd`{agents}: jobs do not notice")]


_OF_AGENTS = ("cluster.", "agent.", "health.", "checks.")
"""The beginnings of keys that agents read, too."""


def _changed(at: str, before: object, now: object) -> Iterator[str]:
    """Yield the dotted key of each setting that differs; of a list, or a table that one side lacks, its own key."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted(before.keys() | now.keys()):
            yield from _changed(f"{at}.{key}" if at else str(key), before.get(key), now.get(key))
    elif before != now:
        yield at


def judge_channels(settings: Settings, api_groups: Collection[str]) -> list[DoctorLine]:
    """Judge whether the groups of each channel of notifications exist, in the settings or by the API."""
    known = {*api_groups, *(slot.group for slot in settings.slots().values()), *(one.name for one in settings.groups)}
    return [
        warn("settings", f"notify channel {one.name} is for group {name}, which is not there", "correct its `groups`")
        for one in settings.notify
        for name in one.groups
        if name not in known
    ]


def judge_heads(heads: Heads | None, version: str) -> list[DoctorLine]:
    """Judge which head leads, and whether another one could take over now; no line for a head alone.

    `version` is the leader's.
    """
    if heads is None:
        return []
    lines = [ok("heads", f"{heads.leader} leads, since {local_time(heads.since)}")]
    if heads.trouble:
        lines = [bad("heads", f"no lease: {heads.trouble}", "look at the database, and at the network to it")]
    for other in heads.others:
        if other.why_not:
            remedy = "`systemctl status stewardd` and `journalctl -u stewardd` on that host say why"
            lines.append(warn("heads", f"{other.name} could not take over now: {other.why_not}", remedy))
        else:
            age = f"its picture of Slurm is {other.picture_s or 0.0:.0f} s old"
            lines.append(ok("heads", f"{other.name} could take over now; {age}"))
        if other.is_heard:
            lines += _differences(other, version)
    if not heads.others:
        remedy = "name two heads in agent.head, and start stewardd on both (docs/operations.md)"
        lines.append(warn("heads", "no other head can take over", remedy))
    return lines


def _differences(other: OtherHead, version: str) -> list[DoctorLine]:
    """Judge in what a head that follows differs from the leader, of what should be the same."""
    lines = []
    if other.version != version:
        text = f"{other.name} is {other.version or 'of another version'}, the leader {version}"
        lines.append(warn("heads", text, "upgrade the other one, too (docs/operations.md, two heads)"))
    if abs(other.ahead_s) > _HEADS_APART_S:
        word = "ahead of" if other.ahead_s > 0 else "behind"
        text = f"the clock of {other.name} is {abs(other.ahead_s):.0f} s {word} the leader's"
        lines.append(warn("heads", text, "set both (`chronyc makestep`) and keep an NTP client running"))
    return lines


def judge_fit(problems: Sequence[Problem]) -> list[DoctorLine]:
    """Judge the contradictions between the settings in force and Slurm."""
    return [warn("settings", *_halves(str(problem))) for problem in problems]


def _halves(text: str) -> tuple[str, str]:
    """Return a problem's finding and remedy."""
    said, _, remedy = text.partition(": ")
    return said, remedy


def judge_include(line: str, included: bool, why_not_writable: str) -> list[DoctorLine]:
    """Judge whether slurm.conf includes our file of partitions and that file can be replaced.

    `line` is the line that slurm.conf must have. `why_not_writable` is empty if the file can be replaced.
    """
    if why_not_writable:
        return [bad(_PLACES, f"our file of partitions: {why_not_writable}", "or change capacity.slurm_include")]
    if not included:
        return [
            bad(
                _PLACES,
                "slurm.conf does not include our file of partitions",
                f"add the line `{line}` to slurm.conf",
            )
        ]
    return [ok(_PLACES, f"slurm.conf has the line `{line}`, and the file can be replaced")]


def judge_lent(lent: Collection[str], known: Collection[str]) -> list[DoctorLine]:
    """Judge the partitions of capacity.owned_partitions against those that Slurm knows."""
    if missing := sorted(set(lent) - set(known)):
        remedy = "make it in slurm.conf or take it out of capacity.owned_partitions"
        return [bad(_PLACES, f"Slurm has no partition {', '.join(missing)}, lent to Steward", remedy)]
    return [ok(_PLACES, f"lent to Steward: {', '.join(sorted(lent))}")] if lent else []


def judge_topology(nodes: Collection[NodeName], shown: str) -> list[DoctorLine]:
    """Judge whether Slurm's topology names all nodes.

    `shown` is the output of `scontrol show topology`; empty without a topology.
    """
    if not shown:
        return []
    named = {name for text in _TOPOLOGY_NODES.findall(shown) for name in expand_nodes(text)}
    if missing := sorted(set(nodes) - named):
        text = f"Slurm's topology has {_names(missing)} in no switch or block: Slurm refuses or never starts jobs there"
        return [bad(_TOPOLOGY, text, "add the nodes to topology.conf or topology.yaml; `scontrol reconfigure`")]
    return [ok(_TOPOLOGY, "every node is in a switch or block")]


def judge_dynamic(config: Mapping[str, str]) -> list[DoctorLine]:
    """Judge Slurm's settings for nodes that register themselves.

    `config` is as `scontrol show config` prints it.
    """
    topic = "dynamic nodes"
    if config.get("MaxNodeCount", "") in ("", "0"):
        return [bad(topic, "MaxNodeCount is not set: no node can register by itself", "set MaxNodeCount in slurm.conf")]
    if config.get("SelectType") == "select/linear":
        return [bad(topic, "SelectType=select/linear takes no dynamic nodes", "set SelectType=select/cons_tres")]
    if (topology := config.get("TopologyPlugin", "")) not in ("", "topology/none", "topology/default", "topology/flat"):
        text = f"TopologyPlugin={topology}: slurmd may not start on a node that the topology does not name"
        return [warn(topic, f"{text} (seen on 22.05)", "name the groups' nodes in slurm.conf and topology.conf")]
    if config.get("TreeWidth", "") != str(_TREE_WIDTH):
        text = f"TreeWidth={config.get('TreeWidth', '?')}: a node may be told to pass messages on to a dynamic one"
        return [warn(topic, f"{text}, whose address it does not know", f"set TreeWidth={_TREE_WIDTH}")]
    return [ok(topic, f"MaxNodeCount={config['MaxNodeCount']}")]


def judge_slurm(config: Mapping[str, str]) -> list[DoctorLine]:
    """Judge Slurm's settings; `config` is as `scontrol show config` prints it, without comments."""
    judges = (_return_to_service, _slurmd_timeout, _min_job_age, _requeue, _requeue_exit, _batch_requeue, _prolog)
    return [judge(config) for judge in judges]


def _return_to_service(config: Mapping[str, str]) -> DoctorLine:
    value = config.get("ReturnToService", "")
    if value == "2":
        return ok(_CONF, "ReturnToService=2: a new instance registers by itself")
    return warn(
        _CONF,
        f"ReturnToService={value or '?'}: a node that Slurm itself marked DOWN stays down after its repair",
        "set ReturnToService=2 (what Steward takes out is drained first and does not come back by itself)",
    )


def _slurmd_timeout(config: Mapping[str, str]) -> DoctorLine:
    seconds = _seconds(config.get("SlurmdTimeout", ""))
    if seconds == 0 or (seconds or 0) >= 60:
        return ok(_CONF, f"SlurmdTimeout={seconds} s: Steward finds a dead node before Slurm does")
    return warn(
        _CONF,
        f"SlurmdTimeout={config.get('SlurmdTimeout', '?')}: Slurm may take out nodes before Steward knows why",
        "set SlurmdTimeout=300 (Slurm's default) or more; Steward finds a dead node within seconds",
    )


def _min_job_age(config: Mapping[str, str]) -> DoctorLine:
    seconds = _seconds(config.get("MinJobAge", ""))
    if seconds == 0 or (seconds or 0) >= _MIN_JOB_AGE_S:
        return ok(_CONF, f"MinJobAge={seconds} s: ended jobs can still be looked at and requeued")
    return bad(
        _CONF,
        f"MinJobAge={config.get('MinJobAge', '?')}: Slurm forgets an ended job before Steward can requeue it",
        f"set MinJobAge={_MIN_JOB_AGE_S} or more (Slurm's default is 300)",
    )


def _requeue(config: Mapping[str, str]) -> DoctorLine:
    if config.get("JobRequeue", "1") == "1":
        return ok(_CONF, "JobRequeue=1: jobs may be requeued")
    return ok(_CONF, "JobRequeue=0: Steward switches requeue on for jobs with --auto-resume and without --no-requeue")


def _requeue_exit(config: Mapping[str, str]) -> DoctorLine:
    given = [f"{key}={config[key]}" for key in ("RequeueExit", "RequeueExitHold") if _is_set(config.get(key, ""))]
    if not given:
        return ok(_CONF, "RequeueExit is not set: only Steward requeues by exit status")
    return warn(
        _CONF,
        f"{', '.join(given)}: Slurm requeues jobs by their exit status, beside Steward and without its budget",
        "remove it, or keep it to exit codes that jobs with --auto-resume do not use",
    )


def _batch_requeue(config: Mapping[str, str]) -> DoctorLine:
    value = config.get("MaxBatchRequeue", "")
    if not value.isdigit() or int(value) >= 5:
        return ok(_CONF, f"MaxBatchRequeue={value or 'Slurm default'}: a job is not held after few requeues")
    return warn(
        _CONF,
        f"MaxBatchRequeue={value}: Slurm holds a job whose launch failed that often",
        "set it to 5 or more; Steward lifts a hold that Slurm set on a job with --auto-resume",
    )


def _prolog(config: Mapping[str, str]) -> DoctorLine:
    flags = config.get("PrologFlags", "")
    if not _is_set(flags):
        return ok(_CONF, "PrologFlags is not set: the prolog runs on a node with the job's first step there")
    if "NoHold" in flags:
        return ok(_CONF, f"PrologFlags={flags}: a job's start does not wait for its prolog")
    return ok(_CONF, f"PrologFlags={flags}: the prolog runs before a job starts; its time counts into every resume")


def _is_set(value: str) -> bool:
    return value not in ("", "(null)", "(none)", "N/A")


def _seconds(value: str) -> int | None:
    """Return the number of a text like `300 sec`; None if it does not begin with a number."""
    first = value.split()[0] if value.split() else ""
    return int(first) if first.isdigit() else None


def judge_shim(path: Path, text: str | None, *, is_new: bool = False) -> list[DoctorLine]:
    """Judge the controller's plugstack.conf, for as long as no node has reported whether Slurm loads the shim.

    `text` is None if the file cannot be read. `is_new`: no agent has ever connected, so the install may not have come
    to the plugin yet.
    """
    remedy = f"add `optional steward.so socket=/run/steward/agent.sock` to {path}, on every node"
    if is_new and "steward" not in (text or ""):
        early = f"{path} does not name steward.so yet, which is expected before step 4 of the install"
        return [warn("shim", early, f"{remedy} (docs/operations.md, step 4)")]
    if text is None:
        return [bad("shim", f"{path} cannot be read", remedy)]
    active = [line.split("#")[0] for line in text.splitlines()]
    ours = [line.split() for line in active if "steward" in line]
    if not ours:
        included = any(line.strip().startswith("include") for line in active)
        if included:
            return [warn("shim", f"{path} names no steward.so itself, but includes other files", remedy)]
        return [bad("shim", f"{path} does not name steward.so: --auto-resume is not known to Slurm", remedy)]
    words = ours[0]
    plugin = Path(words[1]) if len(words) > 1 else Path()
    if plugin.is_absolute() and not plugin.exists():
        return [
            bad(
                "shim",
                f"{path} names {plugin}, which is not there",
                "put the shim there: `make -C spank`, then docs/operations.md, step 4",
            )
        ]
    if words[0] == "required":
        return [warn("shim", f"{path}: the shim is `required`", "make it `optional`: it must never hold up a job")]
    return [
        warn("shim", f"{path}: {' '.join(words)}; no node has said yet that Slurm loads it", "ask again in a minute")
    ]


def judge_loaded(nodes: Collection[NodeName], seen: Mapping[NodeName, AgentView]) -> list[DoctorLine]:
    """Judge by the agents' reports whether Slurm loads the shim on these nodes; empty without such reports."""
    views = {name: view for name, view in seen.items() if name in nodes}  # the last report of a deleted node stays
    told = {name: f.text for name, view in views.items() for f in view.findings if f.check == SHIM and f.is_bad}
    if told:
        text = f"jobs on {_names(sorted(told))} have no shim: {told[min(told)]} (looked at every {SHIM_EVERY_S:g} s)"
        configless = "where slurmd has its files from slurmctld, `scontrol reconfigure` on the controller"
        remedy = f"name steward.so, built for that Slurm, in plugstack.conf there; {configless}"
        return [warn("shim", text, remedy)]
    loaded = sorted(name for name, view in views.items() if SHIM in view.passed)
    return [ok("shim", f"Slurm loads it on {_names(loaded)}")] if loaded else []


def judge_agents(
    nodes: Collection[NodeName],
    views: Mapping[NodeName, AgentView],
    details: Mapping[NodeName, AgentDetail],
    version: str,
    *,
    is_new: bool,
) -> list[DoctorLine]:
    """Judge whether all nodes have an agent of the head's version and with the right time.

    `nodes` are those whose agents are expected; `version` is the head's; `is_new`: no agent has ever connected.
    """
    connected = {name for name, view in views.items() if view.connected}
    missing = sorted(set(nodes) - connected)
    strangers = sorted(connected - set(nodes))
    others = sorted(name for name in connected if name in details and details[name].version != version)
    skewed = sorted(name for name in connected if name in details and abs(details[name].skew_s or 0.0) > _SKEW_S)
    refusing = {name: why for name in missing if (why := _refusal(views.get(name)))}
    return [
        *([_refusing(refusing)] if refusing else []),
        _missing(missing, len(nodes), has_met=not is_new),
        *([_strangers(strangers)] if strangers else []),
        _versions(others, version),
        _clocks(skewed),
    ]


def _refusal(view: AgentView | None) -> str:
    """Return why an agent refused this head; empty if it did not."""
    return view.lost_why if view is not None and view.lost_why.startswith(REFUSED_BY_AGENT) else ""


def _refusing(whys: Mapping[NodeName, str]) -> DoctorLine:
    """Return the line about agents that refuse this head."""
    first = min(whys)
    remedy = (
        "run stewardd as SlurmUser, name it in cluster.slurm_user on the nodes too, and give all hosts one MUNGE key"
    )
    return bad("agents", f"on {_names(sorted(whys))}: {whys[first]}", remedy)


def judge_addresses(moved: Collection[NodeName], unknown: Collection[NodeName]) -> list[DoctorLine]:
    """Judge the addresses from which agents connect.

    `moved`: nodes whose agents connect from an address that neither Slurm nor the provider knows for them. `unknown`:
    nodes without a known address.
    """
    if not moved and unknown:
        return [ok("addresses", f"no address is known to compare with, or none is wanted: {_names(sorted(unknown))}")]
    if not moved:
        return [ok("addresses", "agents connect from the known addresses of their nodes")]
    what = "agents connect from addresses that neither Slurm nor the provider knows for their nodes"
    text = f"{what}: {_names(sorted(moved))}"
    remedy = "a second network or NAT: nothing to do; else look at the nodes, and set head.agent_addresses to strict"
    return [warn("addresses", text, remedy)]


def _missing(missing: list[NodeName], nodes: int, *, has_met: bool) -> DoctorLine:
    """Return the line about nodes without a connected agent."""
    if not missing:
        return ok("agents", f"all {nodes} agents are connected")
    remedy = "start steward-agent there; `systemctl status steward-agent` on the node says what is wrong"
    if len(missing) == nodes and not has_met:
        text = f"no agent has come yet from any of {nodes} nodes, which is expected before step 3 of the install"
        return warn("agents", text, f"{remedy} (docs/operations.md, step 3)")
    text = f"{len(missing)} of {nodes} nodes have no connected agent: {_names(missing)}"
    return bad("agents", text, remedy) if len(missing) == nodes else warn("agents", text, remedy)


def _strangers(strangers: list[NodeName]) -> DoctorLine:
    """Return the line about agents of unknown nodes."""
    return warn(
        "agents",
        f"agents of nodes that Slurm does not know: {_names(strangers)}",
        "set agent.node_name to Slurm's NodeName there",
    )


def _versions(others: list[NodeName], version: str) -> DoctorLine:
    """Return the line about agents whose version is not the head's."""
    if not others:
        return ok("versions", f"head and agents are {version}")
    return warn("versions", f"the head is {version}, other agents: {_names(others)}", "install the same release there")


def _clocks(skewed: list[NodeName]) -> DoctorLine:
    """Return the line about agents whose clock is wrong."""
    if not skewed:
        return ok("clocks", f"all agents' clocks are within {_SKEW_S:g} s of the head's")
    remedy = "set the clock there (`chronyc makestep`) and keep an NTP client running"
    return warn("clocks", f"clocks off by more than {_SKEW_S:g} s: {_names(skewed)}", remedy)


def _names(names: list[NodeName]) -> str:
    """Return the nodes as a folded list, cut to `_LONGEST` characters."""
    return printable(fold(names), _LONGEST)
