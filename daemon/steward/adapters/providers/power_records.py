"""What the power provider remembers: which token each node was last powered up for; one JSON file, replaced whole."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from steward.adapters.filelock import locked
from steward.adapters.jsonfile import write_json
from steward.model.ids import InstanceId, NodeName
from steward.ports import Retryable


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One power cycle of a node that we asked for. `since` is Unix seconds; `ended`: what runs now is another one."""

    node: NodeName
    token: str
    since: float
    ended: bool = False
    leaving: bool = False
    """We ended it and have not seen it powered down yet: Slurm may have lost the order."""
    was_coming: bool = False
    was_on: bool = False
    why: str = ""
    """Why it ended by itself."""

    @property
    def id(self) -> InstanceId:
        return InstanceId(f"power-{self.node}-{hashlib.sha256(self.token.encode()).hexdigest()[:12]}")


class PowerRecords:
    """The last cycle of each node. Writers hold `locked()`; readers need nothing, the file is always whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def locked(self) -> Iterator[dict[NodeName, Cycle]]:
        """Raises Retryable where the file's directory cannot be used."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with locked(self._path.with_suffix(".lock")):
                yield self.load()
        except OSError as error:
            raise Retryable(f"power provider: {self._path}: {error}; SlurmUser must be able to write there") from error

    def load(self) -> dict[NodeName, Cycle]:
        """None where there is no file yet. A file that cannot be read is an error: whose each machine is, is in it."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise Retryable(f"power provider: {self._path}: {error}") from error
        try:
            return {cycle.node: cycle for cycle in (Cycle(**entry) for entry in json.loads(text))}
        except (ValueError, TypeError) as error:
            raise Retryable(f"power provider: {self._path} is damaged ({error}); restore it") from error

    def save(self, cycles: Mapping[NodeName, Cycle]) -> None:
        """On disk before we return."""
        write_json(self._path, [asdict(cycle) for cycle in cycles.values()], sync=True)
