"""Rules between keys: combinations that are each valid alone but cannot work together."""

import difflib
import ipaddress
from collections.abc import Callable, Iterable, Iterator

from steward.model import event_kinds
from steward.model.node_names import expand_nodes
from steward.model.notify import ChannelKind
from steward.model.resume_policy import CHECK_BUDGET_S
from steward.model.setting_types import ProviderKind, split_host_port
from steward.model.settings.errors import Problem
from steward.model.settings.notify import NotifySettings
from steward.model.settings.root import Settings

_NEEDED = {ChannelKind.MAIL: "to", ChannelKind.COMMAND: "command"}


def tls_pair(settings: Settings) -> Iterator[Problem]:
    """Check that the TLS certificate and its key are set together."""
    api = settings.api
    if api.tls_certificate is not None and api.tls_key is None:
        yield Problem.of("api.tls_certificate", str(api.tls_certificate), "it together with api.tls_key")
    if api.tls_key is not None and api.tls_certificate is None:
        yield Problem.of("api.tls_key", str(api.tls_key), "it together with api.tls_certificate")


def plain_http(settings: Settings) -> Iterator[Problem]:
    """Check that plain HTTP beyond loopback is allowed explicitly, because it sends secrets in the clear."""
    api, http = settings.api, settings.head.http
    if api.tls_certificate is None and not api.allow_plain_http and not _is_loopback(split_host_port(http)[0]):
        remedy = "127.0.0.1 as its host, or set api.tls_certificate and api.tls_key (or api.allow_plain_http = true)"
        yield Problem.of("head.http", http, remedy)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


Rule = Callable[[Settings], Iterator[Problem]]


def broken_rules(settings: Settings) -> tuple[Problem, ...]:
    """Return the problems of all broken rules, in the order of the rules."""
    return tuple(problem for rule in _RULES for problem in rule(settings))


def _ports(settings: Settings) -> Iterator[Problem]:
    head = settings.head
    if split_host_port(head.listen)[1] == split_host_port(head.http)[1]:
        yield Problem.of("head.http", head.http, f"another port than head.listen ({head.listen})")
    taken = {split_host_port(where)[1] for where in (head.listen, head.http)}
    if head.users_http and split_host_port(head.users_http)[1] in taken:
        yield Problem.of("head.users_http", head.users_http, "another port than head.listen and head.http")


def _samples(settings: Settings) -> Iterator[Problem]:
    health = settings.health
    if health.bad_samples > health.last_samples:
        yield Problem.of(
            "health.bad_samples", health.bad_samples, f"at most health.last_samples ({health.last_samples})"
        )


def _deadline(settings: Settings) -> Iterator[Problem]:
    """Check that a decision has time for fresh checks and for the detection of a silent node."""
    resume = settings.resume
    needed = resume.detect_s + CHECK_BUDGET_S
    if resume.ask_deadline_s <= needed:
        remedy = f"more than {needed:g} (resume.detect_s and the checks), or no failure is ever explained"
        yield Problem.of("resume.ask_deadline_s", resume.ask_deadline_s, remedy)


def _breaker(settings: Settings) -> Iterator[Problem]:
    """Check that the repairs that may run at once do not trip the breaker."""
    repair = settings.repair
    if repair.breaker_percent < repair.concurrent_percent:
        remedy = f"at least repair.concurrent_percent ({repair.concurrent_percent:g}), or normal work trips the breaker"
        yield Problem.of("repair.breaker_percent", repair.breaker_percent, remedy)
    if repair.breaker_min < repair.concurrent_min:
        remedy = f"at least repair.concurrent_min ({repair.concurrent_min}), or normal work trips the breaker"
        yield Problem.of("repair.breaker_min", repair.breaker_min, remedy)


def _hold(settings: Settings) -> Iterator[Problem]:
    """Check that the hold of a job outlives the budget of the fresh checks for which the job waits."""
    agent = settings.agent
    if 0 < agent.hold_head_absent_s <= CHECK_BUDGET_S:
        remedy = f"more than {CHECK_BUDGET_S:g}, or 0 for no hold while the head is away"
        yield Problem.of("agent.hold_head_absent_s", agent.hold_head_absent_s, remedy)


def _group_names(settings: Settings) -> Iterator[Problem]:
    seen: set[str] = set()
    for number, group in enumerate(settings.groups):
        if group.name in seen:
            yield Problem.of(f"groups[{number}].name", group.name, "a name that no other group has")
        seen.add(group.name)


def _group_nodes(settings: Settings) -> Iterator[Problem]:
    owner: dict[str, str] = {}
    for number, group in enumerate(settings.groups):
        for node in expand_nodes(group.nodes):
            if node in owner:
                remedy = f"nodes of no other group: {node} is in group {owner[node]} too"
                yield Problem.of(f"groups[{number}].nodes", group.nodes, remedy)
                break
        owner.update(dict.fromkeys(expand_nodes(group.nodes), group.name))


_NEED_NO_TABLE = frozenset({"static", "power"})
"""The providers that work with their defaults."""


def _group_providers(settings: Settings) -> Iterator[Problem]:
    there = _NEED_NO_TABLE | settings.provider.model_fields_set
    for number, group in enumerate(settings.groups):
        if group.provider not in there:
            yield Problem.of(f"groups[{number}].provider", group.provider, _with_table(group.provider))


def _with_table(kind: str) -> str:
    if kind in frozenset(ProviderKind):
        return f"it with its table [provider.{kind}], which is not there"
    known = ", ".join(f'"{each}"' for each in ProviderKind)
    return f"one of {known}, or one that an installed package brings; and add its table [provider.{kind}]"


def _provider_tables(settings: Settings) -> Iterator[Problem]:
    """Check that each table of a provider that is not Steward's own is used: it may be a misspelt one."""
    used = {group.provider for group in settings.groups} | {settings.capacity.provider}
    for kind in sorted(settings.provider.brought.keys() - used):
        close = difflib.get_close_matches(kind, ProviderKind, n=1, cutoff=0.5)
        remedy = f"[provider.{close[0]}]" if close else "a name that a group has as its provider, or remove the table"
        yield Problem(key=f"provider.{kind}", text=f"[provider.{kind}]: no group has this provider: use {remedy}")


def _capacity_provider(settings: Settings) -> Iterator[Problem]:
    """Check that the provider of groups without a table can make nodes with names that slurm.conf does not list."""
    kind = settings.capacity.provider
    if kind in (ProviderKind.STATIC, ProviderKind.POWER):
        remedy = "a provider that makes machines of any name; its nodes must be in a [[groups]] table"
        yield Problem.of("capacity.provider", kind, remedy)
    elif kind is not None and kind not in settings.provider.model_fields_set:
        yield Problem.of("capacity.provider", kind, _with_table(kind))


def _ec2(settings: Settings) -> Iterator[Problem]:
    """Check that the recipe of an EC2 instance is set, and that its tags are the site's own."""
    ec2 = settings.provider.ec2
    if ec2 is not None and not ec2.launch_template and not (ec2.image and ec2.types):
        yield Problem.of("provider.ec2.launch_template", "", "a launch template, or set provider.ec2.image and .types")
    if ec2 is not None and (ours := sorted(tag for tag in ec2.tags if tag.startswith(("steward:", "aws:")))):
        yield Problem.of("provider.ec2.tags", ours[0], "another tag: steward:* and aws:* are not the site's")


def _spares(settings: Settings) -> Iterator[Problem]:
    """Check that no spare is in a group, which would lose the node, and that a group can use the spares."""
    static, spares = settings.provider.static, set(settings.spares())
    if static is None or not spares:
        return
    grouped = {node: group.name for group in settings.groups for node in expand_nodes(group.nodes)}
    if twice := sorted(spares & grouped.keys()):
        remedy = f"nodes of no group: {twice[0]} is in group {grouped[twice[0]]}"
        yield Problem.of("provider.static.spares", static.spares, remedy)
    if not any(group.provider == ProviderKind.STATIC for group in settings.groups):
        remedy = 'it with a group whose provider is "static": spares only stand in for nodes of such groups'
        yield Problem.of("provider.static.spares", static.spares, remedy)


def _channels(settings: Settings) -> Iterator[Problem]:
    yield from channel_problems(settings.notify)


def _channel_groups(settings: Settings) -> Iterator[Problem]:
    """Check that the groups of channels exist, where the API can make no others."""
    known = sorted({slot.group for slot in settings.slots().values()} | {group.name for group in settings.groups})
    if settings.capacity.has_provider:
        return
    for number, one in enumerate(settings.notify):
        if unknown := next((name for name in one.groups if name not in known), None):
            close = difflib.get_close_matches(unknown, known, n=1, cutoff=0.5)
            remedy = close[0] if close else f"one of {', '.join(known)}" if known else "a group of a [[groups]] table"
            yield Problem.of(f"notify[{number}].groups", unknown, remedy)


_RULES: tuple[Rule, ...] = (
    _ports,
    tls_pair,
    plain_http,
    _samples,
    _deadline,
    _breaker,
    _hold,
    _group_names,
    _group_nodes,
    _group_providers,
    _provider_tables,
    _capacity_provider,
    _ec2,
    _spares,
    _channels,
    _channel_groups,
)


def channel_problems(channels: Iterable[NotifySettings]) -> Iterator[Problem]:
    """Check that names are unique and that each channel has its kind's keys; no message quotes a URL or a secret."""
    seen: set[str] = set()
    for number, one in enumerate(channels):
        place = f"notify[{number}]"
        if one.name in seen:
            yield Problem.of(f"{place}.name", one.name, "a name that no other channel has")
        seen.add(one.name)
        yield from _targets(place, one)


def _targets(place: str, one: NotifySettings) -> Iterator[Problem]:
    if one.kind is ChannelKind.WEBHOOK:
        if (one.url is None) == (one.url_file is None):
            yield Problem(key=f"{place}.url", text=f"{place} (kind webhook): give one of url and url_file")
        elif one.url is not None and not one.url.get_secret_value().startswith(("https://", "http://")):
            yield Problem(
                key=f"{place}.url", text=f"{place}.url: write http://... or https://... (it is not shown here)"
            )
    elif not getattr(one, needed := _NEEDED[one.kind]):
        yield Problem(key=f"{place}.{needed}", text=f"{place} (kind {one.kind.value}): give {needed}")
    if one.secret is not None and one.secret_file is not None:
        yield Problem(key=f"{place}.secret", text=f"{place}: give only one of secret and secret_file")
    if wrong := [address for address in one.to if address.startswith("-") or not address.isprintable()]:
        yield Problem.of(f"{place}.to", wrong[0], "a mail address, for example ops@example.org")
    if not one.levels:
        yield Problem.of(f"{place}.levels", [], "at least one of info, warning and error")
    if unknown := next((kind for kind in one.kinds if not event_kinds.is_a_beginning(kind)), None):
        yield Problem.of(f"{place}.kinds", unknown, event_kinds.nearest(unknown))
