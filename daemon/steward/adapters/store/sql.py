"""StorePort on SQL. One transaction a call. A commit writes only the rows that changed since the last one."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, insert, or_, select, true
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from steward.adapters.codec import encode
from steward.adapters.store import rows, sections
from steward.adapters.store.engine import WRITES
from steward.adapters.store.mend import Mender, is_damage
from steward.adapters.store.tables import ledger as table
from steward.model.agent_action import Action
from steward.model.case import Case
from steward.model.events import Event, Level
from steward.model.ids import Key
from steward.model.ledger import Run
from steward.model.memory import Memory
from steward.model.notify import ChannelState
from steward.policy.job.ledger import Line, changed_lines, key_of
from steward.ports import Deposed, LedgerQuery, Permanent, Retryable

_FAILURES_S = 3600.0
"""Outcomes count for this time. One that lies further in the future is from a wrong clock."""
_KEEP_S = 30 * 86400.0
_KEEP_LEDGER_S = 400 * 86400.0
_PRUNE_EVERY_S = 600.0


class SqlStore:
    """StorePort on SQL. Safe to call from several threads. `now` is Unix seconds, for journal times and for pruning.

    Outcomes and events are kept for `keep_s` seconds, the ledger for `keep_ledger_s`.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        now: Callable[[], float] = time.time,
        keep_s: float = _KEEP_S,
        keep_ledger_s: float = _KEEP_LEDGER_S,
        mender: Mender | None = None,
        fence: Callable[[Connection], None] = lambda connection: None,
    ) -> None:
        """Take the engine; `mender` repairs its file. Without one, every use of a damaged database raises Permanent.

        `fence` is called in each transaction that writes, and raises Deposed if this head may not write.
        """
        self._engine = engine
        self._now = now
        self._keep_s, self._keep_ledger_s = keep_s, keep_ledger_s
        self._mender, self._mended, self._fence = mender, 0, fence
        if mender is not None:
            mender.note_used()
        self._writing = threading.RLock()
        self._stored: Memory | None = None
        self._prune_at = self._prune_used_at = now()

    def load(self) -> Memory:
        with self._transaction() as connection:
            (memory, lost), open_keys = rows.memory(connection), rows.open_keys(connection)
        if lost:
            with suppress(Deposed):  # a follower reads, too
                self.add_events([_unreadable(lost, self._now())])
        asked = {key: at for key, at in memory.asked.items() if key not in open_keys}
        return replace(memory, asked=MappingProxyType(asked))

    def commit(self, memory: Memory, intents: Sequence[Action], events: Sequence[Event]) -> None:
        with self._writing:
            self._follow_file()
            now = self._now()
            stored, self._stored = self._stored, None  # unknown until the commit has succeeded
            with self._transaction(writes=True) as connection:
                before = stored or rows.memory(connection)[0]
                rows.write(connection, sections.changes(before, memory))
                write(connection, changed_lines(before, memory))
                rows.add_intents(connection, intents, now)
                rows.add_events(connection, events)
                self._prune(connection, now)
            self._stored = memory

    def record_outcomes(self, errors: Mapping[Key, str], at: float) -> None:
        with self._writing, self._transaction(writes=True) as connection:
            rows.record_outcomes(connection, errors, at)

    def failures(self) -> Mapping[str, str]:
        with self._transaction() as connection:
            now = self._now()
            return rows.failures(connection, since=now - _FAILURES_S, until=now + _FAILURES_S)

    def done(self, kind: str) -> frozenset[str]:
        with self._transaction() as connection:
            now = self._now()
            return rows.keys_done(connection, kind, since=now - _FAILURES_S, until=now + _FAILURES_S)

    def ledger(self, wanted: LedgerQuery) -> list[Line]:
        with self._transaction() as connection:
            return read(connection, wanted)

    def add_events(self, events: Sequence[Event]) -> None:
        with self._writing, self._transaction(writes=True) as connection:
            rows.add_events(connection, events)

    def events(self, *, after: int = 0, limit: int = 500, node: str = "", job: int = 0) -> list[tuple[int, Event]]:
        with self._transaction() as connection:
            return rows.events(connection, after=after, limit=limit, node=node, job=job)

    def set_aside_at(self) -> float:
        """Return when a damaged file was last set aside, in Unix seconds; 0 if none is there, or no file is ours."""
        return 0.0 if self._mender is None else self._mender.set_aside_at()

    def channel(self, name: str) -> ChannelState | None:
        with self._transaction() as connection:
            return rows.channel(connection, name)

    def keep_channel(self, name: str, state: ChannelState) -> None:
        with self._writing, self._transaction(writes=True) as connection:
            rows.keep_channel(connection, name, state)

    def text(self, name: str) -> str | None:
        """Return the text that a provider keeps here, in place of a file; None if there is none."""
        with self._transaction() as connection:
            return rows.text(connection, name)

    def keep_text(self, name: str, text: str) -> None:
        """Replace a provider's text."""
        with self._writing, self._transaction(writes=True) as connection:
            rows.keep_text(connection, name, text)

    def first_use(self, key: str, until: float) -> bool:
        with self._writing, self._transaction(writes=True) as connection:
            now = self._now()
            if now >= self._prune_used_at:
                self._prune_used_at = now + _PRUNE_EVERY_S
                rows.prune_used(connection, now=now)
            return rows.first_use(connection, key, until=until, now=now)

    def _prune(self, connection: Connection, now: float) -> None:
        """Remove a bounded number of old rows now and then, so that no commit is slow for it."""
        if now >= self._prune_at:
            self._prune_at = now + _PRUNE_EVERY_S
            rows.prune(connection, before=now - self._keep_s, now=now)
            prune(connection, before=now - self._keep_ledger_s)

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[Connection]:
        """Yield a connection whose transaction is committed at the end.

        Raises Retryable for a locked, full or absent database, and for a damaged one that was repaired; Permanent for
        any other refusal of the database.
        """
        engine, mended = self._engine.execution_options(**WRITES) if writes else self._engine, self._mended
        try:
            with engine.begin() as connection:
                if writes:
                    self._fence(connection)
                yield connection
        except OperationalError as error:
            raise Retryable(f"database {_shown(self._engine)}: {error.orig}") from error
        except DBAPIError as error:
            if self._mender is not None and is_damage(error):
                self._mend(self._mender, str(error.orig), mended)
                raise Retryable(
                    f"database {_shown(self._engine)} was damaged ({error.orig}): a new one is begun"
                ) from error
            raise Permanent(f"database {_shown(self._engine)}: {error.orig}") from error
        except SQLAlchemyError as error:
            raise Retryable(f"database {_shown(self._engine)}: {error}") from error

    def _follow_file(self) -> None:
        """Go on in the file that has our file's name, if ours was removed or replaced; it then gets all of memory."""
        # SQLite itself would write into the removed file without an error, and the next head would know nothing
        if self._mender is not None and not self._mender.is_used():
            self._engine.dispose()
            self._stored = None
            self._mender.begin_again()

    def _mend(self, mender: Mender, problem: str, mended: int) -> None:
        """Repair the database, once if several threads find it damaged. A later commit writes all of memory again."""
        with self._writing:
            if self._mended == mended:
                self._engine.dispose()
                mender.mend(problem, is_remembered=True)
                mender.note_used()
                self._mended, self._stored = mended + 1, None


@dataclass(frozen=True, slots=True)
class StoredText:
    """SharedText in the store of several heads."""

    store: SqlStore
    name: str

    def read(self) -> str | None:
        return self.store.text(self.name)

    def write(self, text: str) -> None:
        self.store.keep_text(self.name, text)


def _unreadable(lost: Sequence[str], at: float) -> Event:
    more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    text = f"the store has what this Steward cannot read and goes on without ({lost[0][:300]}{more})"
    remedy = "was it written by a later release? `steward events` and docs/operations.md say what to set again"
    return Event(at=at, kind="store.unreadable", level=Level.ERROR, text=f"{text}: {remedy}")


def _shown(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=True)


# The ledger's rows: a changed line replaces the line with its key.

_KINDS: dict[str, type[Run | Case]] = {"run": Run, "case": Case}
_KEYS_AT_ONCE = 500
_PRUNE_ROWS = 2000


def write(connection: Connection, lines: Iterable[Line]) -> None:
    """Write the lines, replacing those with the same keys."""
    rows = [_row(line) for line in lines]
    keys = [row["key"] for row in rows]
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        connection.execute(delete(table).where(table.c.key.in_(keys[start : start + _KEYS_AT_ONCE])))
    if rows:
        connection.execute(insert(table), rows)


def read(connection: Connection, wanted: LedgerQuery) -> list[Line]:
    """Return the newest `wanted.limit` lines, oldest first, without unreadable ones."""
    where: list[ColumnElement[bool]] = [true()]
    where += [table.c.begun < wanted.until] if wanted.until is not None else []
    where += [_goes_on(wanted.since)] if wanted.since else []
    where += [table.c.job == wanted.job] if wanted.job else []
    where += [table.c.body.contains(f'"task_id": {json.dumps(wanted.task)}', autoescape=True)] if wanted.task else []
    query = select(table.c.key, table.c.kind, table.c.body).where(*where)
    newest = query.order_by(table.c.begun.desc(), table.c.key.desc()).limit(wanted.limit)
    found = [
        rows.readable(_KINDS.get(kind), body, f"ledger row {key}") for key, kind, body in connection.execute(newest)
    ]
    return [line for line in found if line is not None][::-1]


def _goes_on(since: float) -> ColumnElement[bool]:
    """Return the condition for lines that are not over by then, and for all other runs of their jobs."""
    young = or_(table.c.ended.is_(None), table.c.ended >= since)
    # the time between two runs counts for the job, too
    return or_(young, table.c.job.in_(select(table.c.job).where(young, table.c.job.is_not(None))))


def prune(connection: Connection, *, before: float) -> None:
    """Remove a bounded number of lines that began before `before`, and ended before it or not at all.

    If there are too many lines, the oldest ended ones are removed, too.
    """
    old = or_(table.c.ended < before, table.c.ended.is_(None))
    query = select(table.c.key).where(table.c.begun < before, old).order_by(table.c.begun).limit(_PRUNE_ROWS)
    keys = list(connection.execute(query).scalars())
    many = (connection.execute(select(func.count()).select_from(table)).scalar() or 0) - rows.MOST_ROWS
    if many > len(keys):
        ended = select(table.c.key).where(table.c.ended.is_not(None)).order_by(table.c.begun)
        keys += connection.execute(ended.limit(min(many, _PRUNE_ROWS))).scalars()
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        connection.execute(delete(table).where(table.c.key.in_(keys[start : start + _KEYS_AT_ONCE])))


def _row(line: Line) -> dict[str, object]:
    kind = "run" if isinstance(line, Run) else "case"
    body = json.dumps(encode(_KINDS[kind], line), ensure_ascii=False)
    if isinstance(line, Run):
        ended = line.ended if line.ending is not None else None
        return {"key": key_of(line), "kind": kind, "begun": line.started, "ended": ended, "job": line.job, "body": body}
    return {
        "key": key_of(line),
        "kind": kind,
        "begun": line.opened,
        "ended": line.closed,
        "job": None,
        "body": body,
    }
