"""What the static provider remembers: one small JSON file, replaced as a whole."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from steward.adapters.filelock import locked
from steward.adapters.jsonfile import write_json
from steward.model.ids import InstanceId, NodeName
from steward.ports import Retryable

_TOKENS_KEPT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Loan:
    """A spare that serves in place of another node. `since` is Unix seconds."""

    node: NodeName
    instead_of: NodeName | None
    token: str
    since: float

    @property
    def id(self) -> InstanceId:
        return InstanceId(f"static-{self.node}-{self.token}")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """`reboots` are the tokens of the last reboots, oldest first."""

    loans: tuple[Loan, ...] = ()
    reboots: tuple[str, ...] = ()

    def with_reboot(self, token: str) -> "State":
        return replace(self, reboots=(*self.reboots, token)[-_TOKENS_KEPT:])

    def without_reboot(self, token: str) -> "State":
        return replace(self, reboots=tuple(kept for kept in self.reboots if kept != token))


class StaticRecords:
    """The state in one file. Writers hold `locked()`; readers need nothing, the file is always whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def locked(self) -> Iterator[State]:
        """Raises Retryable where the file's directory cannot be used."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with locked(self._path.with_suffix(".lock")):
                yield self.load()
        except OSError as error:
            raise Retryable(f"static provider: {self._path}: {error}; SlurmUser must be able to write there") from error

    def load(self) -> State:
        """An empty one where there is no file yet. A file that cannot be read is an error: who serves is in it."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return State()
        except OSError as error:
            raise Retryable(f"static provider: {self._path}: {error}") from error
        try:
            stored = json.loads(text)
            return State(loans=tuple(Loan(**loan) for loan in stored["loans"]), reboots=tuple(stored["reboots"]))
        except (ValueError, TypeError, KeyError) as error:
            remedy = "restore it, or remove it when no spare serves"
            raise Retryable(f"static provider: {self._path} is damaged ({error}); {remedy}") from error

    def save(self, state: State) -> None:
        """On disk before we return."""
        write_json(self._path, asdict(state), sync=True)
