"""Choose the adapters that the settings select."""

import logging
import os
import pwd
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import SecretStr

from steward.adapters.files import SharedText
from steward.adapters.keys_file import KeysFile
from steward.adapters.log_lines import log_to, log_to_stderr
from steward.adapters.notify import NotifyCommand as CommandMessenger
from steward.adapters.notify import Smtp
from steward.adapters.providers.command import CommandProvider
from steward.adapters.providers.power import PowerProvider
from steward.adapters.providers.static import StaticProvider
from steward.adapters.slurm.power import PowerSwitch
from steward.adapters.store.engine import SHARED, check_url, is_file, open_engine, sqlite_url
from steward.adapters.store.lease import SqlLease
from steward.adapters.store.mend import Mender
from steward.adapters.store.sql import SqlStore
from steward.api.admission import own_names
from steward.model.access import AccessKey
from steward.model.events import Event
from steward.model.ids import InstanceId
from steward.model.instance import SPARES, Instance, Slot
from steward.model.leadership import Lease
from steward.model.notify import ChannelKind
from steward.model.settings import ProviderKind, Settings, split_host_port
from steward.model.settings.clouds import Ec2ProviderSettings as Ec2Settings
from steward.model.settings.clouds import PowerProviderSettings as PowerSettings
from steward.model.settings.notify import NotifySettings
from steward.model.settings.providers import StaticProviderSettings as StaticSettings
from steward.model.text import cause
from steward.ports import MessengerPort, Permanent, ProviderPort, SlurmPort
from steward.workflows.notify import NotifyChannel

STATIC_STATE, POWER_STATE = "static.json", "power.json"
"""The files of providers' states in a head's state_dir, and the names of the texts that heads share in their place."""

# Fleet: the providers of all groups as one.


class Fleet:
    """All providers as one: each call goes to the provider of the slot's group, or of the instance."""

    def __init__(self, by_group: Mapping[str, ProviderPort], others: ProviderPort | None = None) -> None:
        """Take the providers by group; `others` is the provider of all other groups.

        Groups that share a provider are given the same object.
        """
        self._by_group = by_group
        self._others = others
        every = [*by_group.values(), *([others] if others is not None else [])]
        self._providers = tuple({id(provider): provider for provider in every}.values())
        self._lock = threading.Lock()
        self._listed: Mapping[InstanceId, ProviderPort] = MappingProxyType({})
        self._launched: dict[InstanceId, ProviderPort] = {}
        """Instances that their provider may not list yet: kept until they are listed or ended."""

    def describe(self) -> str:
        """Return the providers in words."""
        return "; ".join(provider.describe() for provider in self._providers)

    def instances(self) -> Mapping[InstanceId, Instance]:
        """Return the instances of all providers. Raises the error of a provider whose list failed."""
        # no partial list: it would look like lost machines
        listed = [(provider, provider.instances()) for provider in self._providers]
        with self._lock:
            self._listed = {instance: provider for provider, found in listed for instance in found}
            self._launched = {each: owner for each, owner in self._launched.items() if each not in self._listed}
        return {instance: found[instance] for _, found in listed for instance in found}

    def launch(self, slot: Slot, token: str) -> Instance:
        """Launch a machine with the provider of the slot's group."""
        provider = self._by_group.get(slot.group, self._others)
        if provider is None:
            remedy = "add its [[groups]] table or set capacity.provider"
            raise Permanent(f"group {slot.group} of {slot.node} has no provider: {remedy}")
        made = provider.launch(slot, token)
        with self._lock:
            self._launched[made.id] = provider
        return made

    def terminate(self, instance: InstanceId) -> None:
        """End an instance; do nothing if no provider knows it."""
        owner = self._owner(instance)
        if owner is None:
            return
        owner.terminate(instance)
        with self._lock:
            self._launched.pop(instance, None)

    def reboot(self, instance: InstanceId, token: str) -> None:
        """Reboot an instance. Raises Permanent for an unknown one."""
        owner = self._owner(instance)
        if owner is None:
            raise Permanent(f"no instance {instance} to reboot: no provider lists it")
        owner.reboot(instance, token)

    def _owner(self, instance: InstanceId) -> ProviderPort | None:
        """Return the instance's provider; None if no provider lists it."""
        if len(self._providers) == 1:
            return self._providers[0]
        known = self._known(instance)
        if known is None:
            # After a restart of the head no provider was listed yet.
            self.instances()
            known = self._known(instance)
        return known

    def _known(self, instance: InstanceId) -> ProviderPort | None:
        """Return the provider that listed or launched the instance; None if it is not known."""
        with self._lock:
            return self._listed.get(instance) or self._launched.get(instance)


try:
    from steward.adapters.systemd import JournalHandler
except ImportError:  # systemd-python is not installed
    JournalHandler = None  # type: ignore[assignment, misc]


_NOISY_LOGGERS = ("urllib3", "botocore", "boto3", "s3transfer")
"""At debug level these log the paths of webhooks, and requests with their signatures and session tokens."""


def start_logging(level: int) -> None:
    """Log to the journal, with fields, if stderr goes there; otherwise key=value lines to stderr."""
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    if JournalHandler is not None and _stderr_is_the_journals():
        log_to(JournalHandler(), level)
    else:
        log_to_stderr(level)


def _stderr_is_the_journals() -> bool:
    """Return whether stderr goes to the journal."""
    # systemd names the device and inode of the stream it made; a redirected stderr has others
    stat = os.fstat(2)
    return os.environ.get("JOURNAL_STREAM") == f"{stat.st_dev}:{stat.st_ino}"


Shared = Callable[[str], SharedText]
"""Returns the text of this name that heads share, in place of the file with this name in a head's state_dir."""


def make_providers(settings: Settings, slurm: SlurmPort, shared: Shared | None = None) -> Fleet | None:
    """Return the providers that the settings name; None if there are none. Raises Permanent for an unusable one.

    Without `shared` each keeps its state in a file.
    """
    other = settings.capacity.provider
    kinds = {group.provider for group in settings.groups} | ({other} if other is not None else set())
    made = {kind: _provider(kind, settings, slurm, shared) for kind in sorted(kinds)}
    by_group = {group.name: made[group.provider] for group in settings.groups}
    if ProviderKind.STATIC in made:
        by_group[SPARES] = made[ProviderKind.STATIC]
    return Fleet(by_group, made[other] if other is not None else None) if made else None


def _provider(kind: str, settings: Settings, slurm: SlurmPort, shared: Shared | None) -> ProviderPort:
    """Return one provider. Raises Permanent if it is unusable."""
    table = settings.provider
    if kind == ProviderKind.COMMAND and table.command is not None:
        return CommandProvider(table.command)
    if kind == ProviderKind.EC2 and table.ec2 is not None:
        return _ec2(table.ec2)
    if kind == ProviderKind.POWER:
        return _power(settings, slurm, shared)
    if kind == ProviderKind.STATIC:
        machines = [node for node, slot in settings.slots().items() if slot.fixed]
        state = settings.head.state_dir / STATIC_STATE
        return StaticProvider(table.static or StaticSettings(), machines, state, shared and shared(state.name))
    if kind in table.brought:
        return _brought(kind, table.brought[kind])
    raise Permanent(f"the settings name provider {kind!r}, but there is no [provider.{kind}] table")


def _brought(kind: str, table: Mapping[str, Any]) -> ProviderPort:
    """Return a provider of an installed package. Raises Permanent if no package has it."""
    there = {each.name: each for each in entry_points(group="steward.providers")}
    if kind not in there:
        names = ", ".join(sorted({*ProviderKind, *there}))
        raise Permanent(f"provider {kind}: no package here brings it; there are {names}")
    made: ProviderPort = there[kind].load()(table)
    return made


# Importing botocore takes a tenth of a second at every start, so only this provider imports it.


def _ec2(settings: Ec2Settings) -> ProviderPort:
    try:
        from steward.adapters.providers.ec2 import Ec2Provider  # noqa: PLC0415
    except ImportError as error:
        raise Permanent("provider ec2: install the SDK with `pip install steward-slurm[ec2]`") from error
    return Ec2Provider(settings)


def _power(settings: Settings, slurm: SlurmPort, shared: Shared | None) -> ProviderPort:
    groups = {group.name for group in settings.groups if group.provider == ProviderKind.POWER}
    return PowerProvider(
        settings.provider.power or PowerSettings(),
        [node for node, slot in settings.slots().items() if slot.group in groups],
        settings.head.state_dir / POWER_STATE,
        slurm.nodes,
        PowerSwitch(conf=str(settings.cluster.slurm_conf), timeout_s=settings.cluster.command_timeout_s),
        shared and shared(POWER_STATE),
    )


def open_lease(settings: Settings, peers: Sequence[str]) -> SqlLease | None:
    """Return the lease in the shared database; None for a head alone with an SQLite file.

    Raises Permanent if there are peers and no database that they can share, or if it is another cluster's; Retryable if
    it cannot be reached.
    """
    url = settings.head.database.get_secret_value() if settings.head.database else ""
    if url and not is_file(url):
        lease = SqlLease(open_engine(url, timeout_s=LEASE_TIMEOUT_S))
        check_cluster(lease.read(), settings.cluster.name)
        return lease
    if peers:
        raise Permanent(f"agent.head names another head, {peers[0]}: two heads need one database; {SHARED}")
    return None


def check_cluster(lease: Lease, ours: str) -> None:
    """Raise Permanent if the database has the state of another cluster than ours."""
    theirs = lease.word.cluster
    if ours and theirs and ours != theirs:
        remedy = f"name one for {ours} alone; if {theirs} was renamed, empty the table `lease` while no head runs"
        raise Permanent(f"head.database has the state of another cluster, {theirs}: {remedy}")


def open_store(settings: Settings, tell: Callable[[Event], None], lease: SqlLease | None = None) -> SqlStore:
    """Return the opened store; report to `tell` if a damaged file was repaired. Raises Retryable or Permanent."""
    keep_ledger_s = settings.head.ledger_days * 86400.0
    if settings.head.database:
        fence = lease.fence if lease is not None else lambda connection: None
        engine = open_engine(settings.head.database.get_secret_value())
        return SqlStore(engine, keep_ledger_s=keep_ledger_s, fence=fence)
    directory = settings.head.state_dir
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise no_state_dir(directory, error) from error
    file = directory / "steward.db"
    mender = Mender(file, tell)
    mender.look()
    return SqlStore(open_engine(sqlite_url(file)), keep_ledger_s=keep_ledger_s, mender=mender)


LEASE_TIMEOUT_S = 2.0
"""How long the lease's database may take for an answer: a renewal that takes longer comes too late."""


def no_state_dir(directory: Path, error: OSError) -> Permanent:
    """Return the error that stewardd ends with if it cannot make its folder or work in it."""
    remedy = "make it, owned by SlurmUser"
    if directory.exists():
        remedy = "let SlurmUser write there" if directory.is_dir() else "name a folder"
    return Permanent(f"head.state_dir {directory}: {cause(error)}; {remedy}")


def make_channels(settings: Settings) -> tuple[NotifyChannel, ...]:
    """Return the channels of notifications. Raises Permanent for an unusable one."""
    return tuple(
        NotifyChannel(kind=one.kind, rule=one.rule(), messenger=_messenger(one, settings.cluster.name))
        for one in settings.notify
    )


def _mail(one: NotifySettings, cluster: str) -> MessengerPort:
    host, port = split_host_port(one.smtp)
    return Smtp(host=host, port=port, to=one.to, sender=one.sender, cluster=cluster, timeout_s=one.timeout_s)


def _messenger(one: NotifySettings, cluster: str) -> MessengerPort:
    if one.kind is ChannelKind.MAIL:
        return _mail(one, cluster)
    if one.kind is ChannelKind.COMMAND:
        return CommandMessenger(argv=one.command or (), cluster=cluster, timeout_s=one.timeout_s)
    return _webhook(one, cluster)


def _webhook(one: NotifySettings, cluster: str) -> MessengerPort:
    from steward.adapters.webhook import Webhook  # noqa: PLC0415 - its client takes 6 MiB: only if used

    return Webhook(
        url=_secret(one.url, one.url_file, f"notify channel {one.name}: url_file"),
        cluster=cluster,
        template=one.template,
        secret=_secret(one.secret, one.secret_file, f"notify channel {one.name}: secret_file"),
        timeout_s=one.timeout_s,
    )


def _secret(said: SecretStr | None, file: Path | None, where: str) -> str:
    """Return a secret of the settings or of a file. Raises Permanent if the file cannot be read."""
    if file is None:
        return said.get_secret_value() if said is not None else ""
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Permanent(f"{where} {file}: {cause(error)}; make it, readable by SlurmUser only") from error


def trusted_uids(settings: Settings) -> frozenset[int]:
    """Return the uids that agents believe: root and SlurmUser. Raises Permanent if SlurmUser is unknown here."""
    return frozenset({0, _uid(settings.cluster.slurm_user, "cluster.slurm_user")})


def check_files(settings: Settings) -> None:
    """Read the files that the settings name, as the head does at its start. Raises Permanent for an unusable one."""
    if settings.head.database:
        check_url(settings.head.database.get_secret_value())
    access_keys(settings)
    make_channels(settings)


def own_word(settings: Settings, uid: int) -> frozenset[int]:
    """Return `trusted_uids`. Raises Permanent if our own `uid` is not among it: no agent would believe this head."""
    believed = trusted_uids(settings)
    if uid not in believed:
        name = settings.cluster.slurm_user
        raise Permanent(
            f"stewardd runs as uid {uid}, and agents believe root and cluster.slurm_user ({name}) only: let its unit "
            f"run as {name}, by `systemctl edit stewardd` with User= and Group="
        )
    return believed


def admin_uids(settings: Settings) -> frozenset[int]:
    """Return the uids that may change things over HTTP: root, SlurmUser and `api.admins`."""
    return trusted_uids(settings) | {_uid(name, "api.admins") for name in settings.api.admins}


def access_keys(settings: Settings) -> Callable[[str], AccessKey | None]:
    """Return the function that finds an access key by its id. Raises Permanent for an unusable file."""
    if settings.api.keys_file is None:
        return lambda _id: None
    keys = KeysFile(settings.api.keys_file, trusted_uids(settings))
    keys.key("")
    return keys.key


def _uid(name: str, key: str) -> int:
    """Return the uid of a login name. Raises Permanent if it is unknown."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise Permanent(f"{key}: there is no user {name} on this machine; correct the settings") from None


def host_names(settings: Settings) -> frozenset[str]:
    """Return the names by which requests over HTTP may address this head."""
    head = settings.head
    hosts = (split_host_port(where)[0] for where in (head.http, head.users_http, *settings.agent.head) if where)
    return own_names(*hosts, *settings.api.host_names)
