"""Make the first settings file of a site, for `steward init`, from what Slurm says, with the reason of each guess."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from steward.model.gres import gpus_of
from steward.model.ids import NodeName
from steward.model.node_names import fold
from steward.model.slurm_site import SlurmSite

_PROVIDER_WHY = {
    "static": "The machines are simply there: a faulty node is taken out and held until a person has mended it.\n"
    "# Spares and a reboot command below make that shorter (docs/operations.md).",
    "power": "Slurm itself powers these nodes (ResumeProgram, SuspendProgram): a faulty one is powered down and up.",
}
_MAX_NAME = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessedGroup:
    """Nodes with equal GPUs."""

    name: str
    nodes: tuple[NodeName, ...]
    gpu: str
    gpus: int

    @property
    def kind(self) -> str:
        """Return the GPUs of each node in words."""
        return f"{self.gpus} GPUs{f' ({self.gpu})' if self.gpu else ''} each" if self.gpus else "no GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsDraft:
    """The first settings file, with a line for people about each guess."""

    text: str
    guesses: tuple[str, ...]


def draft(
    site: SlurmSite, *, conf: str, provider: str = "", act: bool = False, login_hosts: bool = False
) -> SettingsDraft:
    """Return the first settings file for the cluster.

    `provider`: "static", "power" or "none"; empty: the one that fits. `act`: repair from the start instead of only
    reporting. `login_hosts`: users may ask the head from login hosts.
    """
    groups = groups_of(site)
    chosen = provider or ("power" if site.powers_nodes else "static")
    parts = [
        _HEADER,
        _cluster(site, conf),
        _login_hosts(login_hosts),
        f'[agent]\n# The controller, as Slurm names it; TCP.\nhead = "{site.controller}:6861"\n',
        _mode(act),
        "[resume]\n# Jobs that ask for it (sbatch --auto-resume=1) are brought back.\nenabled = true\n",
        _gpus(groups),
        _groups(groups, chosen),
        _STATIC if chosen == "static" else "",
        _THRESHOLDS,
    ]
    return SettingsDraft(
        text="\n".join(filter(None, parts)), guesses=_guesses(site, groups, chosen, given=bool(provider))
    )


def groups_of(site: SlurmSite) -> tuple[GuessedGroup, ...]:
    """Return the nodes in groups of equal GPUs; a partition of just these nodes names the group."""
    kinds: dict[tuple[str, int], list[NodeName]] = {}
    for name, node in site.nodes.items():
        found = gpus_of(node.gres)
        kind = found[0].type if found else "", sum(each.amount for each in found)
        kinds.setdefault(kind, []).append(name)
    taken: set[str] = set()
    groups = []
    for (gpu, gpus), names in sorted(kinds.items(), key=lambda each: (-each[0][1], each[0][0])):
        group = _free(_name_for(frozenset(names), gpu, gpus, site.partitions), taken)
        taken.add(group)
        groups.append(GuessedGroup(name=group, nodes=tuple(names), gpu=gpu, gpus=gpus))
    return tuple(groups)


def _name_for(nodes: frozenset[NodeName], gpu: str, gpus: int, partitions: Mapping[str, frozenset[NodeName]]) -> str:
    exact = sorted(name for name, members in partitions.items() if members == nodes)
    return _valid(exact[0] if exact else gpu or ("gpu" if gpus else "cpu"))


def _valid(text: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[: _MAX_NAME - 4] or "nodes"


def _free(name: str, taken: set[str]) -> str:
    numbered = (f"{name}-{number}" for number in range(2, 1000))
    return name if name not in taken else next(each for each in numbered if each not in taken)


def _cluster(site: SlurmSite, conf: str) -> str:
    lines = ["[cluster]", f"name = {_quoted(site.cluster)}", f"slurm_user = {_quoted(site.slurm_user)}"]
    if conf != "/etc/slurm/slurm.conf":
        lines.append(f"slurm_conf = {_quoted(conf)}")
    if site.munge_socket:
        lines.append(f"munge_socket = {_quoted(site.munge_socket)}")
    return "\n".join(lines) + "\n"


def _login_hosts(served: bool) -> str:
    return (
        "[head]\n# Login hosts: lets users there ask for their jobs (steward explain JOB, jobs, report); TCP.\n"
        f'{"" if served else "# "}users_http = "[::]:6862"\n'
    )


def _mode(act: bool) -> str:
    if act:
        return (
            '[repair]\n# Faulty nodes are taken out and repaired. "ask": each repair waits for `steward approve`; '
            '"report": nothing is touched.\nmode = "act"\n'
        )
    return (
        "[repair]\n"
        "# Nothing is touched: `steward events` says what would be done. When that looks right, write\n"
        '# "ask" (each repair waits for `steward approve`) or "act".\n'
        'mode = "report"\n'
    )


def _gpus(groups: Sequence[GuessedGroup]) -> str:
    counts = sorted({group.gpus for group in groups})
    if counts == [0] or not counts:
        return ""
    return "# GPUs: each node must have as many as Slurm's Gres says (check slurm.gres).\n"


def _groups(groups: Sequence[GuessedGroup], provider: str) -> str:
    if provider == "none":
        return "# No [[groups]]: no node is repaired, all are watched. Their jobs are resumed.\n"
    head = f"# {_PROVIDER_WHY[provider]}\n"
    tables = (
        f"[[groups]]  # {len(group.nodes)} nodes, {group.kind}\nname = {_quoted(group.name)}\n"
        f"nodes = {_quoted(fold(group.nodes))}\nprovider = {_quoted(provider)}\n"
        for group in groups
    )
    return head + "\n".join(tables)


def _guesses(site: SlurmSite, groups: Sequence[GuessedGroup], provider: str, *, given: bool) -> tuple[str, ...]:
    return (
        f"cluster {site.cluster}, SlurmUser {site.slurm_user}: from Slurm",
        f"agent.head = {site.controller}:6861: SlurmctldHost; nodes must be able to resolve and reach it",
        *(
            f"group {group.name}: {fold(group.nodes)}: {group.kind}, from Gres"
            for group in groups
            if provider != "none"
        ),
        f"provider {provider}: {_why_provider(site, provider, given)}",
        *_gpu_guess(groups),
        *_munge_guess(site),
    )


def _why_provider(site: SlurmSite, provider: str, given: bool) -> str:
    if given:
        return "as you said"
    if provider == "power":
        return "Slurm has a ResumeProgram and a SuspendProgram"
    return "Slurm does not power nodes up and down itself" if site.nodes else "Slurm has no nodes"


def _gpu_guess(groups: Sequence[GuessedGroup]) -> Iterable[str]:
    counts = sorted({group.gpus for group in groups})
    if counts not in ([], [0]):
        yield f"GPUs: {' or '.join(map(str, counts))} a node, from Gres; the check slurm.gres compares"


def _munge_guess(site: SlurmSite) -> Iterable[str]:
    if not site.uses_munge:
        yield "MUNGE: Slurm here does without it; Steward needs munged, with one key, on every machine"
    elif site.munge_socket:
        yield f"munged's socket {site.munge_socket}: AuthInfo"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_HEADER = """\
# Settings of Steward, the same file on every machine. Made by `steward init` from what Slurm says.
# Every key: docs/config.md. After a change: `steward config check`, then restart stewardd.
"""
_STATIC = """\
# [provider.static]
# spares = "n9"                                       # nodes kept drained, in no group, that stand in for broken ones
# reboot = ["/usr/local/sbin/node-power", "cycle", "%n"]
"""
_THRESHOLDS = """\
# What each machine type must have: without it, a device that is already dead at boot is not noticed.
# [checks."ib.count"]
# expected = 8
#
# [checks."fs.shared"]
# paths = ["/home"]
"""
