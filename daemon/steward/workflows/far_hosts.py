"""Install Steward on many hosts: choose the packages and the script for each. The first problem ends the run."""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import Enum

from steward.model.setting_types import split_host_port
from steward.model.text import printable

_DEB = re.compile(r"(?P<name>steward-[^_/]+)_(?P<version>[^_/]+)_[^_/]+\.deb")
_RPM = re.compile(r"(?P<name>steward-[^/]+)-(?P<version>[^-/]+-[^-/]+)\.[^./]+\.rpm")
_RELEASE = re.compile(r"\b([0-9]{2}\.[0-9]{2})\b")
_SHIM = "steward-shim-"
_LONGEST = 300


class HostRole(Enum):
    """The role of a host: jobs run on a node, people submit jobs on a login host."""

    NODE = "node"
    LOGIN = "login"


_PACKAGES = {HostRole.NODE: ("steward-common", "steward-agent"), HostRole.LOGIN: ("steward-common", "steward-client")}

ASK = """id -u
if command -v apt-get >/dev/null; then echo deb; elif command -v rpm >/dev/null; then echo rpm; else echo none; fi
PATH=$PATH:/usr/sbin:/opt/slurm/bin:/opt/slurm/sbin
sbatch -V 2>/dev/null || slurmd -V 2>/dev/null || echo none
"""
"""A shell script that prints three lines: the user id, the kind of packages, and Slurm's version."""

_INSTALL = """set -e
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
tar -xp -C "$d"
mkdir -p /etc/steward
f=/etc/steward/steward.toml changed=
cmp -s "$d/steward.toml" $f || changed=1
if [ -n "$changed" ] && [ -e $f ]; then cp -p $f $f.old; fi
cp -p "$d/steward.toml" $f
if [ -e "$d/is-deb" ]; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --allow-downgrades "$d"/*.deb
elif command -v dnf >/dev/null; then
    dnf install -y -q "$d"/*.rpm
else
    rpm -U --replacepkgs "$d"/*.rpm
fi >"$d/said" 2>&1 || { grep -v '^[WN]:' "$d/said" | tail -n 3 >&2; exit 1; }
sed -n 's/^steward-shim: //p' "$d/said"
"""
_REACH = """reached= far=
for head in {heads}; do
    if timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' $head 2>/dev/null; then
        reached=1
    else
        far="$far, TCP ${{head% *}}:${{head#* }}"
    fi
done
if [ -n "$far" ]; then
    odd="${{far#, }} (agent.head) is not reached from there within 5 s:"
    odd="$odd open it on the controller to the nodes, and look whether stewardd runs"
    if [ -z "$reached" ]; then echo "installed, but $odd" >&2; exit 1; fi
    echo "$odd"
fi
"""
"""Tests from the host whether a head is reached: the agent itself would only try again, for ever."""
_AGENT = """if [ -n "$changed" ]; then systemctl restart steward-agent; fi
for i in 1 2 3 4 5 6 7 8 9 10; do
    if systemctl is-active --quiet steward-agent; then exit 0; fi
    sleep 1
done
journalctl -u steward-agent -n 3 -o cat >&2
exit 1
"""
REMOVE = """set -e
if command -v dpkg-query >/dev/null; then
    names=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\\n' 'steward-*' 2>/dev/null | sed -n '/^un/!s/^...//p')
    purge() { [ -z "$1" ] || DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq $1 >/dev/null; }
    unused() { apt-get -s autoremove | awk '/^Remv/ {print $2}'; }
    before=$(unused)
    purge "$names"
    purge "$(unused | grep -vxF "$before" || true)"
fi
if command -v rpm >/dev/null && names=$(rpm -qa 'steward-*') && [ -n "$names" ]; then
    rpm -e $names
    rm -rf /opt/steward /etc/steward /var/lib/steward /var/lib/steward-agent
    rm -rf /etc/systemd/system/stewardd.service.d /etc/systemd/system/steward-agent.service.d
fi
"""
"""A shell script that removes every package of Steward, with settings, state and packages that only Steward needed."""


class HostProblem(Exception):
    """A reason not to install on a host, in one line with the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """The facts about a host.

    `kind`: "deb", "rpm" or "none"; `slurm`: a release like "22.05"; empty if the host has none.
    """

    uid: int
    kind: str
    slurm: str

    @staticmethod
    def of(said: str) -> "HostFacts":
        """Return the facts from the output of `ASK`.

        Raises HostProblem for any other output, such as that of a login script.
        """
        lines = said.split("\n")
        if len(lines) < 3 or not lines[0].isdigit() or lines[1] not in ("deb", "rpm", "none"):
            raise HostProblem(
                f"a command over ssh prints something other than its own output: '{printable(said, _LONGEST)}'"
            )
        release = _RELEASE.search(lines[2])
        return HostFacts(uid=int(lines[0]), kind=lines[1], slurm=release[1] if release else "")


def files_for_host(files: Iterable[str], facts: HostFacts, role: HostRole) -> tuple[str, ...]:
    """Return the files in the folder that a host needs. Raises HostProblem if the host or the folder is unfit."""
    if facts.uid != 0:
        raise HostProblem("not root there: log in as root (--ssh 'ssh -l root') or use --sudo")
    if facts.kind == "none":
        raise HostProblem("neither apt-get nor rpm is there: install by hand (docs/operations.md)")
    if not facts.slurm:
        raise HostProblem("no Slurm is there: neither sbatch nor slurmd is in PATH or /opt/slurm; install it first")
    pattern = _DEB if facts.kind == "deb" else _RPM
    found: dict[str, list[str]] = {}
    for file in sorted(files):
        if match := pattern.fullmatch(file):
            found.setdefault(match["name"], []).append(file)
    return tuple(_one(name, found, facts) for name in (*_PACKAGES[role], f"{_SHIM}{facts.slurm}"))


def _one(name: str, found: dict[str, list[str]], facts: HostFacts) -> str:
    """Return the only file of a package. Raises HostProblem if there is none, or more than one."""
    files = found.get(name, [])
    if len(files) > 1:
        raise HostProblem(f"the folder has {len(files)} files of {name}: leave only the one to install")
    if files:
        return files[0]
    if name.startswith(_SHIM):
        there = ", ".join(sorted(each.removeprefix(_SHIM) for each in found if each.startswith(_SHIM))) or "none"
        remedy = "build it where that Slurm's headers are: make packages ARGS=--shim-only"
        raise HostProblem(f"Slurm {facts.slurm} is there, the folder has a shim for {there}: {remedy}")
    raise HostProblem(f"the folder has no {name} as {facts.kind}: make packages makes it")


def install_script(role: HostRole, heads: Iterable[str]) -> str:
    """Return the script that installs from a tar archive on its standard input.

    The archive has the packages, the settings, and an empty file `is-deb` if the packages are deb files. `heads`: where
    agents find the heads (HOST:PORT).
    """
    places = [shlex.quote(" ".join(map(str, split_host_port(head)))) for head in heads]
    reach = _REACH.format(heads=" ".join(places))
    return _INSTALL + (reach + _AGENT if role is HostRole.NODE else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOutcome:
    """The outcome on one host: `odd` is the problem; without one it is empty, and `note` is the host's output."""

    host: str
    odd: str = ""
    note: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class Tally:
    """The outcomes in the order in which the hosts ended, and the hosts that were not begun."""

    ended: list[HostOutcome] = field(default_factory=list)
    untouched: tuple[str, ...] = ()

    @property
    def odd(self) -> list[HostOutcome]:
        """Return the outcomes with a problem."""
        return [each for each in self.ended if each.odd]


def on_hosts(
    hosts: Sequence[str], work: Callable[[str], HostOutcome], told: Callable[[HostOutcome], None], *, at_once: int
) -> Tally:
    """Work on the first host alone, then on `at_once` at a time. After a problem, begin no further host."""
    tally, left = Tally(), list(hosts)
    with ThreadPoolExecutor(at_once) as pool:
        running: set[Future[HostOutcome]] = set()
        while running or (left and not tally.odd):
            most = at_once if tally.ended else 1
            while left and not tally.odd and len(running) < most:
                running.add(pool.submit(work, left.pop(0)))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                tally.ended.append(each.result())
                told(each.result())
    tally.untouched = tuple(left)
    return tally
