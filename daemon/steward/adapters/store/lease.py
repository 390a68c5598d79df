"""LeasePort on SQL: one row that says which head leads, and the check of it in each write of the leader's store.

A change names the state that it changes (epoch and beat), so that of two heads that would take the lease one does. The
row is locked by each write of the leader until that is committed: no head takes the lease in the middle of one.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Engine, Integer, MetaData, Table, delete, insert, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from steward.adapters.codec import decode, encode
from steward.adapters.store.engine import WRITES
from steward.adapters.store.tables import BODY, KEY
from steward.model.leadership import FollowerWord, LeaderWord, Lease
from steward.ports import Deposed, Retryable

# Tables of their own: a head with a database of its own has none of them.
_metadata = MetaData()
_THE_ROW = 1

_lease = Table(
    "lease",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("leader", KEY, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("beat", BigInteger, nullable=False),
    Column("body", BODY, nullable=False),
)
_followers = Table("followers", _metadata, Column("name", KEY, primary_key=True), Column("body", BODY, nullable=False))


class SqlLease:
    """LeasePort on SQL. `take`, `renew` and `release` belong in one thread; any thread may call `fence`."""

    def __init__(self, engine: Engine) -> None:
        """Take the engine and make the tables if they are missing. Raises Retryable."""
        self._engine = engine
        self._mine: Lease | None = None
        with self._named():
            _metadata.create_all(engine)
        with self._named(), suppress(IntegrityError), engine.begin() as connection:  # another head was quicker
            if connection.execute(select(_lease.c.id)).scalar() is None:
                row = {"id": _THE_ROW, "leader": "", "epoch": 0, "beat": 0, "body": _text(LeaderWord, LeaderWord())}
                connection.execute(insert(_lease).values(**row))

    def read(self) -> Lease:
        with self._named(), self._engine.begin() as connection:
            row = connection.execute(select(_lease)).one()
        return Lease(leader=row.leader, epoch=row.epoch, beat=row.beat, word=_value(LeaderWord, row.body))

    def take(self, seen: Lease, leader: str, word: LeaderWord) -> Lease | None:
        # As large as the time of day, so that agents, which refuse an earlier epoch, take one of a new database.
        taken = Lease(leader=leader, epoch=max(seen.epoch + 1, int(word.at)), beat=1, word=word)
        if not self._change(seen, taken):
            return None
        self._mine = taken
        return taken

    def renew(self, word: LeaderWord) -> Lease:
        mine = self._mine
        if mine is None:
            raise Deposed("this head does not lead")
        renewed = replace(mine, beat=mine.beat + 1, word=word)
        if not self._change(mine, renewed):
            # A renewal whose answer was lost counts, too.
            there = self.read()
            if (there.leader, there.epoch) != (mine.leader, mine.epoch):
                self._mine = None
                raise Deposed(_taken_by(there.leader, there.epoch))
            renewed = there
        self._mine = renewed
        return renewed

    def release(self) -> None:
        mine, self._mine = self._mine, None
        if mine is not None:
            self._change(mine, replace(mine, leader="", beat=mine.beat + 1))

    def followers(self) -> Mapping[str, FollowerWord]:
        with self._named(), self._engine.begin() as connection:
            found = connection.execute(select(_followers)).all()
        return {name: _value(FollowerWord, body) for name, body in found}

    def tell(self, follower: str, word: FollowerWord) -> None:
        with self._named(), self._engine.execution_options(**WRITES).begin() as connection:
            connection.execute(delete(_followers).where(_followers.c.name == follower))
            connection.execute(insert(_followers).values(name=follower, body=_text(FollowerWord, word)))

    def fence(self, connection: Connection) -> None:
        """Hold the lease until the connection's transaction ends. Raises Deposed if this head does not have it."""
        mine = self._mine
        if mine is None:
            raise Deposed("this head does not lead: nothing is written")
        query = select(_lease.c.leader, _lease.c.epoch).with_for_update()
        leader, epoch = connection.execute(query).one()
        if (leader, epoch) != (mine.leader, mine.epoch):
            raise Deposed(_taken_by(leader, epoch))

    def _change(self, before: Lease, after: Lease) -> bool:
        """Write the row if it is still as before; return whether it was."""
        values = {"leader": after.leader, "epoch": after.epoch, "beat": after.beat}
        is_as_before = (_lease.c.epoch == before.epoch) & (_lease.c.beat == before.beat)
        change = update(_lease).where(is_as_before).values(**values, body=_text(LeaderWord, after.word))
        with self._named(), self._engine.execution_options(**WRITES).begin() as connection:
            return connection.execute(change).rowcount == 1

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Raise Retryable, with the database's name, for any failure of it."""
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            driver = getattr(error, "orig", None) or error
            where = self._engine.url.render_as_string(hide_password=True)
            raise Retryable(f"the lease in database {where}: {driver}") from error


def _taken_by(leader: str, epoch: int) -> str:
    return f"{leader or 'another head'} has taken the lead (epoch {epoch})"


def _text(kind: Any, value: Any) -> str:
    return json.dumps(encode(kind, value), ensure_ascii=False)


def _value(kind: Any, body: str) -> Any:
    """Return the value; an empty one if another release wrote what cannot be read here."""
    try:
        return decode(kind, json.loads(body))
    except (ValueError, TypeError, KeyError):
        return kind()
