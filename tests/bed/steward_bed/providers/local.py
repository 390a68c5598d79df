"""Provider of the local test bed: an instance is a slurmd and its agent as processes of this machine.

The bed writes `machines.json` into its directory: the programs that a machine runs, with `%n` for the node's name; a
program with a `role` runs on machines of that role only. The file `faults/limit-launch` limits the number of machines.

The state is one JSON file an instance, replaced as a whole, never edited in place.
"""

import json
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steward.adapters.files import locked, write_whole
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.ports import Permanent, ProviderPort, Retryable
from steward_bed.providers.local_machine import (
    Machine,
    Program,
    find,
    own_environment,
    power_off,
    power_on,
    refuse_as_told,
)
from steward_bed.providers.settings import LocalSettings, read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One instance. `launched` is Unix seconds; `type`, `image` and `role` are as requested.

    `reboots` are the tokens of the reboots already done.
    """

    id: InstanceId
    node: NodeName
    group: str
    token: str
    launched: float
    terminated: bool = False
    reboots: tuple[str, ...] = ()
    type: str = ""
    image: str = ""
    role: str = "Compute"
    interrupted: str = ""


class LocalRecords:
    """The records below one directory. Writers hold `locked()`; readers need no lock, since a file is always whole."""

    def __init__(self, directory: Path) -> None:
        self._dir = directory

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the records' lock: one writer at a time over all processes, as head and commands may act at once."""
        self._dir.mkdir(parents=True, exist_ok=True)
        with locked(self._dir / "lock"):
            yield

    def every(self) -> list[Record]:
        """Return all records, oldest launch first."""
        found = [_load(path) for path in self._dir.glob("i-*.json")]
        return sorted(found, key=lambda record: (record.launched, record.id))

    def by_id(self, instance: InstanceId) -> Record | None:
        return next((record for record in self.every() if record.id == instance), None)

    def by_token(self, token: str) -> Record | None:
        return next((record for record in self.every() if record.token == token), None)

    def save(self, record: Record) -> Record:
        """Save the record and return it."""
        # Synced to disk first: no crash of the caller may lose an instance.
        write_whole(self._dir / f"{record.id}.json", json.dumps(asdict(record)), sync=True)
        return record

    def machine(self, record: Record) -> Machine | None:
        """Return the machine behind a record, on or off; None if it was never switched on."""
        return find(self.state_file(record))

    def state_file(self, record: Record) -> Path:
        return self._dir / f"{record.id}.programs"


def _load(path: Path) -> Record:
    entry = json.loads(path.read_text(encoding="utf-8"))
    return Record(**{**entry, "reboots": tuple(entry["reboots"])})


MACHINES = "machines.json"
INSTANCES = "instances"
FAULTS = "faults"
GPU_FAULTS = "gpus"
"""The file in a node's directory with the faults of its simulated GPUs. A boot clears them."""
RUN = "run"
"""The folder in a node's directory for what lasts until the next boot, as /run does."""


def make(table: Mapping[str, Any]) -> ProviderPort:
    """Return the provider for `[provider.local]`. Raises Permanent for a wrong table."""
    return LocalProvider(read_table("local", table, LocalSettings).dir)


class LocalProvider:
    """The provider. Every method is safe to call from several processes at once."""

    def __init__(self, directory: Path) -> None:
        self._dir = directory
        self._records = LocalRecords(directory / INSTANCES)

    def describe(self) -> str:
        return f"local: processes of this machine, in {self._dir}"

    def instances(self) -> Mapping[InstanceId, Instance]:
        if not self._dir.is_dir():
            raise Retryable(f"local provider: {self._dir} is not there; is the test bed up?")
        return {record.id: self._instance(record) for record in self._records.every() if not record.terminated}

    def launch(self, slot: Slot, token: str) -> Instance:
        with self._records.locked():
            record = self._records.by_token(token) or self._new(slot, token)
            if self._records.machine(record) is None and not record.terminated:
                shutil.rmtree(self._dir / "nodes" / record.node, ignore_errors=True)  # a new machine's disk is empty
                self._switch_on(record, token)
            return self._instance(record)

    def terminate(self, instance: InstanceId) -> None:
        with self._records.locked():
            record = self._records.by_id(instance)
            if record is None or record.terminated:
                return
            self._switch_off(record)
            self._records.save(replace(record, terminated=True))

    def reboot(self, instance: InstanceId, token: str) -> None:
        with self._records.locked():
            record = self._records.by_id(instance)
            if record is None or record.terminated:
                raise Permanent(f"no instance {instance} to reboot; `steward-testbed status` lists them")
            if token not in record.reboots:
                self._reboot(record, token)

    def machine(self, node: NodeName) -> Machine | None:
        """Return the machine behind a node, on or off, for the test bed's faults; None if the node has none."""
        record = self._last(node)
        return None if record is None else self._records.machine(record)

    def reclaim(self, node: NodeName, why: str) -> None:
        """List the node's machine as one that is taken away soon, as a spot market does; for the test bed's faults."""
        with self._records.locked():
            if record := self._last(node):
                self._records.save(replace(record, interrupted=why))

    def _last(self, node: NodeName) -> Record | None:
        kept = [record for record in self._records.every() if record.node == node and not record.terminated]
        return kept[-1] if kept else None

    def _new(self, slot: Slot, token: str) -> Record:
        """Record a new instance, before anything starts: another call with this token finds it."""
        there = [record for record in self._records.every() if not record.terminated]
        refuse_as_told(self._dir / FAULTS, len(there), slot)
        for old in there:
            if old.node == slot.node and self._is_on(old):
                raise Retryable(f"{slot.node}: instance {old.id} still has this name; terminate it first")
        fresh = Record(
            id=InstanceId(f"i-{uuid.uuid4().hex[:17]}"),
            node=slot.node,
            group=slot.group,
            token=token,
            launched=time.time(),
            type=slot.types[0] if slot.types else "",
            image=slot.image,
            role=slot.role,
        )
        return self._records.save(fresh)

    def _reboot(self, record: Record, token: str) -> None:
        """Reboot the machine once for this token."""
        # The machine itself knows which token booted it: a caller may have died before the record was saved.
        machine = self._records.machine(record)
        if machine is None or machine.cause != token or not machine.is_on:
            self._switch_off(record)
            self._switch_on(record, token)
        self._records.save(replace(record, reboots=(*record.reboots, token)))

    def _switch_on(self, record: Record, cause: str) -> None:
        """Boot the machine, with a new boot id."""
        # The id files must be there before the agent reads them.
        home = self._dir / "nodes" / record.node
        (home / "checks.d").mkdir(parents=True, exist_ok=True)
        (home / "instance_id").write_text(f"{record.id}\n")
        (home / "boot_id").write_text(f"{uuid.uuid4()}\n")
        (home / "kernel.log").write_text("")
        (home / GPU_FAULTS).unlink(missing_ok=True)
        shutil.rmtree(home / RUN, ignore_errors=True)
        state = self._records.state_file(record)
        (home / "image").write_text(f"{record.image}\n")
        power_on(record.node, self._programs(record.node, record.role), cwd=home, state=state, cause=cause)

    def _programs(self, node: NodeName, role: str) -> tuple[Program, ...]:
        try:
            plan = json.loads((self._dir / MACHINES).read_text())
        except (OSError, ValueError) as error:
            raise Retryable(f"local provider: cannot read {self._dir / MACHINES}: {error}") from error
        return tuple(
            Program(
                name=each["name"],
                argv=tuple(word.replace("%n", node) for word in each["argv"]),
                env=own_environment({key: word.replace("%n", node) for key, word in each["env"].items()}),
                log=Path(each["log"].replace("%n", node)),
                comes_back=each["name"] == "agent",
            )
            for each in plan["programs"]
            if each.get("role", role) == role
        )

    def _switch_off(self, record: Record) -> None:
        if machine := self._records.machine(record):
            power_off(machine)

    def _is_on(self, record: Record) -> bool:
        machine = self._records.machine(record)
        return machine is not None and machine.is_on

    def _instance(self, record: Record) -> Instance:
        return Instance(
            id=record.id,
            node=record.node,
            state=self._state(record),
            token=record.token,
            launched=record.launched,
            address="127.0.0.1",
            type=record.type,
            interrupted=record.interrupted,
        )

    def _state(self, record: Record) -> InstanceState:
        if record.terminated:
            return InstanceState.GONE
        machine = self._records.machine(record)
        if machine is None:
            return InstanceState.PENDING
        return InstanceState.RUNNING if machine.is_on else InstanceState.STOPPED
