"""Find contradictions between a settings file and its Slurm cluster, for `steward config check`."""

from collections.abc import Callable, Iterable, Iterator

from steward.model.node_names import expand_nodes, fold
from steward.model.setting_types import split_host_port
from steward.model.settings import Problem, Settings
from steward.model.slurm_site import SlurmSite

_Rule = Callable[[Settings, SlurmSite], Iterator[Problem]]
SHIM_HOLD_S = 80
"""The shim's default of `hold=` in seconds, as in `spank/config.h`."""


def contradictions_with_slurm(settings: Settings, site: SlurmSite) -> tuple[Problem, ...]:
    """Return the contradictions between the file and Slurm, in the order of the rules."""
    return tuple(problem for rule in _RULES for problem in rule(settings, site))


def logins_of(settings: Settings) -> tuple[str, ...]:
    """Return the login names in the file."""
    return (settings.cluster.slurm_user, *settings.api.admins)


def _slurm_user(settings: Settings, site: SlurmSite) -> Iterator[Problem]:
    said = settings.cluster.slurm_user
    if site.slurm_user and said != site.slurm_user:
        yield Problem.of("cluster.slurm_user", said, f'"{site.slurm_user}", which is SlurmUser of this Slurm')
    elif said not in site.logins:
        yield Problem.of("cluster.slurm_user", said, "a login name that this machine knows")


def _admins(settings: Settings, site: SlurmSite) -> Iterator[Problem]:
    if unknown := [login for login in settings.api.admins if login not in site.logins]:
        yield Problem.of("api.admins", unknown[0], "login names that this machine knows")


def _group_nodes(settings: Settings, site: SlurmSite) -> Iterator[Problem]:
    for number, group in enumerate(settings.groups):
        yield from _unknown_nodes(f"groups[{number}].nodes", expand_nodes(group.nodes), site)


def _spares(settings: Settings, site: SlurmSite) -> Iterator[Problem]:
    yield from _unknown_nodes("provider.static.spares", settings.spares(), site)


def _unknown_nodes(key: str, names: Iterable[str], site: SlurmSite) -> Iterator[Problem]:
    unknown = sorted(set(names) - site.nodes.keys())
    if unknown and not site.takes_new_nodes:
        yield Problem.of(key, fold(unknown), "nodes that Slurm has (`sinfo -N` lists them)")


def _partitions(settings: Settings, site: SlurmSite) -> Iterator[Problem]:
    known = ", ".join(sorted(site.partitions)[:8])
    for name in settings.capacity.owned_partitions:
        if name not in site.partitions:
            yield Problem.of("capacity.owned_partitions", name, f"partitions that Slurm has: {known}")
    for number, each in enumerate(settings.resume.default):
        if each.partition and each.partition not in site.partitions:
            key = f"resume.default[{number}].partition"
            yield Problem.of(key, each.partition, f"a partition that Slurm has: {known}")


def _head(settings: Settings, site: SlurmSite) -> Iterator[Problem]:
    far = site.far_nodes()
    for address in settings.agent.head if far else ():
        host, port = split_host_port(address)
        if host == "localhost" or host.startswith("127.") or host == "::1":
            remedy = (
                f'"{site.controller or "HEAD"}:{port}" or the like: on {fold(far[:4])} '
                f"{host} is the node itself, and its agent would never find the head"
            )
            yield Problem.of("agent.head", address, remedy)


def _munge_socket(settings: Settings, site: SlurmSite) -> Iterator[Problem]:
    if site.munge_socket and settings.cluster.munge_socket is None:
        yield Problem.of("cluster.munge_socket", "none", f'"{site.munge_socket}", which is Slurm\'s own (AuthInfo)')


def _hold(settings: Settings, site: SlurmSite) -> Iterator[Problem]:
    said, bound = settings.agent.hold_head_absent_s, site.hold_s if site.hold_s is not None else SHIM_HOLD_S
    if said >= bound > 0:
        where = "`hold=` of steward.so in plugstack.conf" if site.hold_s is not None else "the shim's default `hold=`"
        yield Problem.of("agent.hold_head_absent_s", said, f"less than {bound}, {where}: the shim gives up after that")


_RULES: tuple[_Rule, ...] = (_slurm_user, _admins, _group_nodes, _spares, _partitions, _head, _munge_socket, _hold)
