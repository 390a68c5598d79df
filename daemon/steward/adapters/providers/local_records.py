"""What the local provider remembers: one JSON file an instance, replaced as a whole, never edited in place."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from steward.adapters.filelock import locked
from steward.adapters.providers.local_machine import Machine, find
from steward.adapters.whole_file import write_whole
from steward.model.ids import InstanceId, NodeName


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One instance. `reboots` are the tokens of reboots already done; `launched` is Unix seconds; `type`, `image` and
    `role` are what was asked for."""

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


class Records:
    """The records below one directory. Writers hold `locked()`; readers need nothing, a file is always whole."""

    def __init__(self, directory: Path) -> None:
        self._dir = directory

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time, over processes too: the head and a person's command may act at once."""
        self._dir.mkdir(parents=True, exist_ok=True)
        with locked(self._dir / "lock"):
            yield

    def every(self) -> list[Record]:
        """All records, oldest launch first."""
        found = [_load(path) for path in self._dir.glob("i-*.json")]
        return sorted(found, key=lambda record: (record.launched, record.id))

    def by_id(self, instance: InstanceId) -> Record | None:
        return next((record for record in self.every() if record.id == instance), None)

    def by_token(self, token: str) -> Record | None:
        return next((record for record in self.every() if record.token == token), None)

    def save(self, record: Record) -> Record:
        """On disk before we return, so that no crash of the caller can make an instance be forgotten."""
        write_whole(self._dir / f"{record.id}.json", json.dumps(asdict(record)), sync=True)
        return record

    def machine(self, record: Record) -> Machine | None:
        """The machine behind a record, on or off; None when it was never switched on."""
        return find(self.state_file(record))

    def state_file(self, record: Record) -> Path:
        return self._dir / f"{record.id}.programs"


def _load(path: Path) -> Record:
    entry = json.loads(path.read_text(encoding="utf-8"))
    return Record(**{**entry, "reboots": tuple(entry["reboots"])})
