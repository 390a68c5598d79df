"""The ledger's rows: a line is written anew under its key whenever it changes, so that none is ever there twice."""

import json
from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, delete, insert, or_, select, true

from steward.adapters.store.codec import decode, encode
from steward.adapters.store.tables import ledger as table
from steward.model.case import Case
from steward.model.ledger import Run
from steward.policy.job.ledger_rows import Line, key_of
from steward.ports import LedgerQuery, Permanent

_KINDS: dict[str, type[Run | Case]] = {"run": Run, "case": Case}
_KEYS_AT_ONCE = 500
_PRUNE_ROWS = 2000


def write(connection: Connection, lines: Iterable[Line]) -> None:
    rows = [_row(line) for line in lines]
    keys = [row["key"] for row in rows]
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        connection.execute(delete(table).where(table.c.key.in_(keys[start : start + _KEYS_AT_ONCE])))
    if rows:
        connection.execute(insert(table), rows)


def read(connection: Connection, wanted: LedgerQuery) -> list[Line]:
    """Oldest first, the newest `wanted.limit`. Raises Permanent when a row cannot be read."""
    where: list[ColumnElement[bool]] = [true()]
    where += [table.c.begun < wanted.until] if wanted.until is not None else []
    where += [_goes_on(wanted.since)] if wanted.since else []
    where += [table.c.job == wanted.job] if wanted.job else []
    query = select(table.c.key, table.c.kind, table.c.body).where(*where)
    newest = query.order_by(table.c.begun.desc(), table.c.key.desc()).limit(wanted.limit)
    return [_line(*row) for row in connection.execute(newest)][::-1]


def _goes_on(since: float) -> ColumnElement[bool]:
    """Lines that are not over by then, and all other runs of their jobs: what lies between two runs is of the job."""
    young = or_(table.c.ended.is_(None), table.c.ended >= since)
    return or_(young, table.c.job.in_(select(table.c.job).where(young, table.c.job.is_not(None))))


def prune(connection: Connection, *, before: float) -> None:
    """Lines that ended before that, and those as old whose end nobody saw; a bounded number."""
    old = or_(table.c.ended < before, table.c.ended.is_(None))
    query = select(table.c.key).where(table.c.begun < before, old).order_by(table.c.begun).limit(_PRUNE_ROWS)
    keys = list(connection.execute(query).scalars())
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


def _line(key: str, kind: str, body: str) -> Line:
    try:
        found: Line = decode(_KINDS[kind], json.loads(body))
    except (ValueError, TypeError, KeyError) as error:
        raise Permanent(f"ledger row {key} cannot be read: {error!r}; was it written by a newer Steward?") from error
    return found
