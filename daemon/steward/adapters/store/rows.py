"""The statements for each table, inside a transaction of the caller's."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select, true, update

from steward.adapters.codec import decode, encode
from steward.adapters.store import sections
from steward.adapters.store.tables import events as events_table
from steward.adapters.store.tables import journal as journal_table
from steward.adapters.store.tables import memory as memory_table
from steward.model.agent_action import Action
from steward.model.events import Event
from steward.model.ids import Key
from steward.model.memory import Memory
from steward.model.notify import ChannelState

log = logging.getLogger(__name__)

CHANNEL = "notify"
"""The section of notification channels' state; no field of Memory has this name."""
USED = "used"
"""The section of things that may be used once, such as signatures of requests; no field of Memory has this name."""
TEXT = "text"
"""The section of texts that providers keep in place of files; no field of Memory has this name."""
_PRUNE_ROWS = 5000
MOST_ROWS, MOST_OF_KIND = 500_000, 50_000
"""Up to `MOST_ROWS` rows of journal and of events are kept, and this many events of one kind, however young."""
_KEYS_AT_ONCE = 500
_MAX_TEXT = 2000


def memory(connection: Connection) -> tuple[Memory, tuple[str, ...]]:
    """Return the memory as last committed, and its unreadable parts (`sections.memory`)."""
    table = memory_table
    return sections.memory(connection.execute(select(table.c.section, table.c.key, table.c.body)))


def write(connection: Connection, changes: sections.Changes) -> None:
    """Write the changed rows by deleting and inserting each, which works alike on every database."""
    table = memory_table
    old = [*changes.gone, *((section, key) for section, key, _ in changes.put)]
    if old:
        match = (table.c.section == bindparam("of_section")) & (table.c.key == bindparam("of_key"))
        connection.execute(delete(table).where(match), [{"of_section": s, "of_key": k} for s, k in old])
    if changes.put:
        connection.execute(insert(table), [{"section": s, "key": k, "body": body} for s, k, body in changes.put])


def channel(connection: Connection, name: str) -> ChannelState | None:
    """Return a channel's state; None for a new or unreadable one, which continues with events from now on."""
    table = memory_table
    found = connection.execute(select(table.c.body).where(table.c.section == CHANNEL, table.c.key == name)).scalar()
    return None if found is None else readable(ChannelState, found, f"notify channel {name}")


def readable(kind: Any, body: str, where: str) -> Any:
    """Return the row's value; None, with a line in the log, if it is unreadable: a bad row costs only itself."""
    try:
        return decode(kind, json.loads(body))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        log.warning("%s cannot be read and is left out: %s: %s", where, type(error).__name__, error)
        return None


def keep_channel(connection: Connection, name: str, state: ChannelState) -> None:
    body = json.dumps(encode(ChannelState, state), ensure_ascii=False)
    write(connection, sections.Changes(put=((CHANNEL, name, body),), gone=()))


def text(connection: Connection, name: str) -> str | None:
    """Return a provider's text; None if there is none."""
    table = memory_table
    return connection.execute(select(table.c.body).where(table.c.section == TEXT, table.c.key == name)).scalar()


def keep_text(connection: Connection, name: str, text: str) -> None:
    write(connection, sections.Changes(put=((TEXT, name, text),), gone=()))


def first_use(connection: Connection, key: str, *, until: float, now: float) -> bool:
    table = memory_table
    mine = (table.c.section == USED) & (table.c.key == key)
    found = connection.execute(select(table.c.body).where(mine)).scalar()
    if found is not None and _end_of(found, otherwise=until) >= now:
        return False
    write(connection, sections.Changes(put=((USED, key, repr(until)),), gone=()))
    return True


def prune_used(connection: Connection, *, now: float) -> None:
    """Remove keys whose time is over."""
    table = memory_table
    found = connection.execute(select(table.c.key, table.c.body).where(table.c.section == USED)).all()
    gone = tuple((USED, key) for key, until in found if _end_of(until, otherwise=now) < now)
    write(connection, sections.Changes(put=(), gone=gone[:_PRUNE_ROWS]))


def _end_of(body: str, *, otherwise: float) -> float:
    """Return the time until which a key counts as used; `otherwise` if that is unreadable."""
    try:
        return float(body)
    except ValueError:
        return otherwise


def add_intents(connection: Connection, intents: Sequence[Action], at: float) -> None:
    if intents:
        connection.execute(insert(journal_table), [_intent(action, at) for action in intents])


def _intent(action: Action, at: float) -> dict[str, object]:
    """Return the row of an intent, whose body is for people."""
    # long texts are cut: a thousand orders that each describe the whole cluster would be gigabytes
    told = {name: _cut(value) for name, value in encode(type(action), action).items()}
    return {
        "key": action.key,
        "kind": type(action).__name__,
        "body": json.dumps(told, ensure_ascii=False),
        "why": str(action.why),
        "asked_at": at,
    }


def _cut(value: object) -> object:
    return f"{value[:_MAX_TEXT]}..." if isinstance(value, str) and len(value) > _MAX_TEXT else value


def open_keys(connection: Connection) -> frozenset[str]:
    """Return the keys whose newest intent has no outcome, so that it is unknown whether it was done."""
    table = journal_table
    newest = select(func.max(table.c.seq)).group_by(table.c.key)
    query = select(table.c.key).where(table.c.outcome_at.is_(None), table.c.seq.in_(newest))
    return frozenset(connection.execute(query).scalars())


def record_outcomes(connection: Connection, errors: Mapping[Key, str], at: float) -> None:
    """Write the outcome to the newest intent of each key; nothing if that was pruned."""
    table, keys = journal_table, sorted(errors)
    change = update(table).where(table.c.seq == bindparam("of_seq")).values(outcome_at=at, error=bindparam("of_error"))
    for some in (keys[start : start + _KEYS_AT_ONCE] for start in range(0, len(keys), _KEYS_AT_ONCE)):
        newest = select(func.max(table.c.seq), table.c.key).where(table.c.key.in_(some)).group_by(table.c.key)
        if found := [{"of_seq": seq, "of_error": errors[key]} for seq, key in connection.execute(newest)]:
            connection.execute(change, found)


def failures(connection: Connection, *, since: float, until: float) -> dict[str, str]:
    """Return the error of each key whose newest outcome is a failure."""
    table, is_young = journal_table, journal_table.c.outcome_at.between(since, until)
    # few of thousands of outcomes are failures
    ever = select(table.c.key).where(is_young, table.c.error != "")
    newest = select(func.max(table.c.seq)).where(is_young, table.c.key.in_(ever)).group_by(table.c.key)
    query = select(table.c.key, table.c.error).where(table.c.seq.in_(newest), table.c.error != "")
    return dict(connection.execute(query).all())


def keys_done(connection: Connection, kind: str, *, since: float, until: float) -> frozenset[str]:
    """Return the keys of a kind whose newest outcome was success."""
    table = journal_table
    query = select(table.c.key, table.c.error).where(table.c.outcome_at.between(since, until), table.c.kind == kind)
    last = dict(connection.execute(query.order_by(table.c.seq)).all())
    return frozenset(key for key, error in last.items() if not error)


def add_events(connection: Connection, events: Sequence[Event]) -> None:
    if events:
        connection.execute(insert(events_table), [_event(event) for event in events])


def _event(event: Event) -> dict[str, object]:
    body = json.dumps(encode(Event, event), ensure_ascii=False)
    return {"at": event.at, "kind": event.kind, "node": event.node, "job": event.job, "body": body}


def events(connection: Connection, *, after: int, limit: int, node: str, job: int) -> list[tuple[int, Event]]:
    """Return events with their sequence numbers, oldest first: those after `after`, or the newest without it."""
    table = events_table
    wanted: list[ColumnElement[bool]] = [true()]
    wanted += [table.c.seq > after] if after else []
    wanted += [table.c.node == node] if node else []
    wanted += [table.c.job == job] if job else []
    order = table.c.seq.asc() if after else table.c.seq.desc()
    query = select(table.c.seq, table.c.body).where(*wanted).order_by(order).limit(limit)
    read = [(seq, readable(Event, body, f"event {seq}")) for seq, body in connection.execute(query)]
    found = [(seq, event) for seq, event in read if event is not None]
    return found if after else found[::-1]


def prune(connection: Connection, *, before: float, now: float) -> None:
    """Remove the oldest rows of journal and events, up to the last one older than `before`, a bounded number at a time.

    Rows are in the order of writing: one with the time of a clock that was ahead goes with the rows after it.
    """
    for table, at in ((events_table, events_table.c.at), (journal_table, journal_table.c.asked_at)):
        oldest = connection.execute(select(table.c.seq, at).where(at <= now).order_by(table.c.seq).limit(_PRUNE_ROWS))
        old = [seq for seq, stamp in oldest if stamp < before]
        if old:
            connection.execute(delete(table).where(table.c.seq <= old[-1]))
        newest = connection.execute(select(func.max(table.c.seq))).scalar() or 0
        connection.execute(delete(table).where(table.c.seq <= newest - MOST_ROWS))
    _prune_kinds(connection)


def _prune_kinds(connection: Connection) -> None:
    """Keep the newest events of each kind: a frequent kind must not push the others out."""
    table = events_table
    many = select(table.c.kind).group_by(table.c.kind).having(func.count() > MOST_OF_KIND)
    for kind in connection.execute(many).scalars().all():
        of_kind = select(table.c.seq).where(table.c.kind == kind).order_by(table.c.seq.desc())
        last = connection.execute(of_kind.offset(MOST_OF_KIND).limit(1)).scalar()
        connection.execute(delete(table).where(table.c.kind == kind, table.c.seq <= last))
