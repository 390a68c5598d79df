"""The changes to bring Slurm's accounting to the wanted limits: lower limits come before higher ones.

A value that was set neither by Steward nor by Slurm's defaults is a person's: it stays, and a warning says so once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from zlib import crc32

from steward.model.accounting import QOS_PREFIX, Accounting, Association, Qos
from steward.model.action import DropQos, SetQos, SetTeam
from steward.model.events import Level
from steward.model.ids import Key
from steward.model.quota import Wrote
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.quota.limits import WantedQos, WantedTeam, users_apart, users_with_default

_VALUES_KEPT = 6
SETTLE_S = 10.0
"""What is asked of slurmdbd shows in a picture that is read this long afterwards, if it was carried out at all."""
Edit = SetQos | SetTeam | DropQos


@dataclass(slots=True, kw_only=True)
class Edits:
    """The changes to make: `lower` reduce limits, `higher` give more; `urgent` are higher ones that a job waits for."""

    lower: list[Edit] = field(default_factory=list)
    urgent: list[Edit] = field(default_factory=list)
    higher: list[Edit] = field(default_factory=list)
    awaited: set[str] = field(default_factory=set)
    """QOS whose deletion may be under way: they are changed, or made again, after that."""

    @property
    def count(self) -> int:
        """Return how many changes there are."""
        return len(self.lower) + len(self.urgent) + len(self.higher)

    @property
    def owners(self) -> set[str]:
        """Return the QOS and the accounts that have changes to make, or that are awaited."""
        every = (*self.lower, *self.urgent, *self.higher)
        return self.awaited | {each.account if isinstance(each, SetTeam) else each.qos for each in every}


def edits(qos: Iterable[WantedQos], teams: Iterable[WantedTeam], picture: Accounting, draft: Draft) -> Edits:
    """Return the changes to make, and remember the values that are written."""
    found = Edits()
    for want in qos:
        has = picture.qos.get(want.name)
        if has is not None and is_under_way(drop_key(want.name), picture, draft):
            found.awaited.add(want.name)
        else:
            _add_qos_changes(want, has, draft, found)
    for team in teams:
        if (association := picture.of_account(team.account)) is not None:
            _add_team_changes(team, association, picture, draft, found)
    return found


def _add_qos_changes(want: WantedQos, has: Qos | None, draft: Draft, found: Edits) -> None:
    """Add the changes of one QOS."""
    if has is None:
        _remember_made(want, draft)
        found.higher.append(_creation(want))
        return
    ours = _Fields(want.name, draft)
    lower, higher = _changed_caps(ours, has.limits, want.caps)
    if lower:
        text = f"{want.name} gets less: {_limits_text(lower, has.limits)}"
        why = Why(rule="quota.lower", text=text)
        found.lower.append(SetQos(key=edit_key(want.name, text), why=why, qos=want.name, caps=tuple(lower)))
    rest = _other_changes(want, has, ours)
    if higher or rest:
        words = [_limits_text(higher, has.limits), *(f"{name} {_value_text(value)}" for name, value in rest.items())]
        text = f"{want.name} gets {'; '.join(filter(None, words))}"
        why = Why(rule="quota.higher", text=text)
        key = edit_key(want.name, f"{text} {sorted(want.preempts)}")
        more = SetQos(key=key, why=why, qos=want.name, caps=tuple(higher), **rest)
        (found.urgent if want.urgent and higher else found.higher).append(more)


def _creation(want: WantedQos) -> SetQos:
    """Return the action that makes a missing QOS."""
    return SetQos(
        key=make_key(want.name),
        why=Why(rule="quota.qos", text=f"{want.name} is missing"),
        qos=want.name,
        caps=tuple(sorted(want.caps.items())),
        priority=want.priority,
        preempts=want.preempts,
        preempt_mode=want.preempt_mode or None,
        grace_s=want.grace_s,
    )


def _other_changes(want: WantedQos, has: Qos, ours: "_Fields") -> dict[str, Any]:
    """Return the differences of a QOS besides its limits, by the field of the action."""
    found: dict[str, Any] = {}
    if ours.differs("priority", str(has.priority), str(want.priority)):
        found["priority"] = want.priority
    if ours.differs("grace", str(has.grace_s), str(want.grace_s)):
        found["grace_s"] = want.grace_s
    if ours.differs("preempt", _joined(has.preempts), _joined(want.preempts)):
        found["preempts"] = want.preempts
    if want.preempt_mode and ours.differs("preempt_mode", has.preempt_mode.upper(), want.preempt_mode):
        found["preempt_mode"] = want.preempt_mode
    return found


def _value_text(value: object) -> str:
    """Return a value in words."""
    return f"{len(value)} QOS" if isinstance(value, frozenset) else str(value)


def _add_team_changes(want: WantedTeam, has: Association, picture: Accounting, draft: Draft, found: Edits) -> None:
    """Add the changes of one team's account."""
    # leave out changes that Slurm would refuse: a default QOS that a user may not use, and the removal of a QOS that is
    # a user's own default
    is_apart = bool(users_apart(picture, want.account))
    ours = _Fields(f"account {want.account}", draft, has_limits_of_its_own=True)
    lower, higher = _changed_caps(ours, has.limits, want.caps)
    missing = want.qos - has.qos
    drop = frozenset(name for name in has.qos if name.startswith(QOS_PREFIX) and name not in want.qos)
    drop -= set(users_with_default(picture, want.account, drop).values())
    is_default = is_apart or not want.default_qos or not ours.differs("default_qos", has.default_qos, want.default_qos)
    if not (lower or higher or missing or drop) and is_default:
        return
    words = [_limits_text([*lower, *higher], has.limits)]
    words += [f"QOS {', '.join(sorted(missing))}"] if missing else []
    words += [f"no longer QOS {', '.join(sorted(drop))}"] if drop else []
    words += [] if is_default else [f"{want.default_qos} as default"]
    text = f"account {want.account} gets {'; '.join(filter(None, words))}"
    found.higher.append(
        SetTeam(
            key=edit_key(want.account, text),
            why=Why(rule="quota.account", text=text),
            account=want.account,
            add=missing,
            drop=drop,
            caps=(*lower, *higher),
            default_qos=None if is_default else want.default_qos,
        )
    )


def _changed_caps(
    ours: "_Fields", has: Mapping[str, int], want: Mapping[str, int]
) -> tuple[list[tuple[str, int | None]], list[tuple[str, int | None]]]:
    """Return the limits to change, without a person's: the lowered ones, and the raised ones."""
    lower: list[tuple[str, int | None]] = []
    higher: list[tuple[str, int | None]] = []
    for tres in sorted(want.keys() | ours.written(has)):
        old, new = has.get(tres), want.get(tres)
        if ours.differs(f"cap:{tres}", _shown(old), _shown(new)):
            is_less = new is not None and (old is None or new < old)
            (lower if is_less else higher).append((tres, new))
    return lower, higher


class _Fields:
    """The fields of one QOS or account, compared with the wanted values and with our earlier writes."""

    def __init__(self, owner: str, draft: Draft, *, has_limits_of_its_own: bool = False) -> None:
        """Take the name of the QOS or account; with `has_limits_of_its_own`, limits before our first are a person's."""
        self._owner, self._draft, self._has_limits_of_its_own = owner, draft, has_limits_of_its_own

    def written(self, has: Mapping[str, int]) -> set[str]:
        """Return the limits in Slurm that we wrote."""
        return {tres for tres in has if f"{self._owner}/cap:{tres}" in self._draft.quota_writes}

    def differs(self, name: str, has: str, want: str) -> bool:
        """Return whether the field must be written; if so, remember the wanted value."""
        key, writes = f"{self._owner}/{name}", self._draft.quota_writes
        known = writes.get(key)
        if known is None and has and self._has_limits_of_its_own and name.startswith("cap:"):
            known = Wrote(values=(want,))
        if has == want:
            if known is None:
                writes[key] = Wrote(values=(want,))
            elif known.foreign is not None:
                writes[key] = Wrote(values=_newest(want, *known.values))
                self._draft.tell("quota.field_back", f"{key} is {want or 'unset'} again, as Steward wants it")
            return False
        if known is not None and has not in known.values:
            self._leave_to_person(key, known, has, want)
            return False
        if known is None or known.values[0] != want or known.foreign is not None:
            writes[key] = Wrote(values=_newest(want, has, *(known.values if known else ())))
        return True

    def _leave_to_person(self, key: str, known: Wrote, has: str, want: str) -> None:
        """Leave a person's value in place, and warn once."""
        if known.foreign == has:
            return
        self._draft.quota_writes[key] = replace(known, foreign=has, since=self._draft.now)
        text = (
            f"{key} is {has or 'unset'} in Slurm: it was set by hand, and it stays. Steward would set it to "
            f"{want or 'unset'}; it takes over again when it is set to {known.values[0] or 'unset'}"
        )
        self._draft.tell("quota.by_hand", text, level=Level.WARNING)


def _newest(*values: str) -> tuple[str, ...]:
    """Return the values without repetition, the newest few."""
    return tuple(dict.fromkeys(values))[:_VALUES_KEPT]


def _remember_made(want: WantedQos, draft: Draft) -> None:
    """Remember the values of a QOS that is being created."""
    before = {key: each for key, each in draft.quota_writes.items() if key.startswith(f"{want.name}/")}
    forget(want.name, draft)
    # a new QOS has no past, but Slurm may next show values that an earlier turn asked for
    values = {f"cap:{tres}": str(amount) for tres, amount in want.caps.items()}
    values |= {"priority": str(want.priority), "grace": str(want.grace_s), "preempt": _joined(want.preempts)}
    for name, value in values.items():
        key = f"{want.name}/{name}"
        draft.quota_writes[key] = Wrote(values=_newest(value, *(before[key].values if key in before else ())))


def remember(owner: str, values: Mapping[str, str], draft: Draft) -> None:
    """Remember that we write these values, by field, into an account or a QOS."""
    for name, value in values.items():
        key = f"{owner}/{name}"
        known = draft.quota_writes.get(key) or Wrote(values=())
        draft.quota_writes[key] = replace(known, values=_newest(value, *known.values))


def forget(owner: str, draft: Draft) -> None:
    """Forget the values that were written for this owner."""
    for key in [key for key in draft.quota_writes if key.startswith(f"{owner}/")]:
        del draft.quota_writes[key]


@lru_cache(maxsize=4096)
def _joined(names: frozenset[str]) -> str:
    """Return the names as one sorted text."""
    return ",".join(sorted(names))


def _shown(value: int | None) -> str:
    """Return a limit as Slurm's text; empty for none."""
    return "" if value is None else str(value)


def _limits_text(caps: Iterable[tuple[str, int | None]], has: Mapping[str, int]) -> str:
    """Return changed limits in words."""
    changes = ((tres, _shown(has.get(tres)), _shown(new)) for tres, new in caps)
    return ", ".join(f"{tres} {old or 'unlimited'} -> {new or 'unlimited'}" for tres, old, new in changes)


def edit_key(owner: str, text: str) -> Key:
    """Return the key of a change of this owner."""
    return Key(f"quota:{owner}:{crc32(text.encode()):08x}")


def make_key(qos: str) -> Key:
    """Return the key of the creation of a QOS."""
    return edit_key(qos, "made")


def drop_key(qos: str) -> Key:
    """Return the key of the deletion of a QOS."""
    return edit_key(qos, "ends")


def is_coming(qos: str, picture: Accounting, draft: Draft) -> bool:
    """Return whether a QOS that the picture lacks may be made by what we asked for."""
    made, dropped = draft.asked_at(make_key(qos)), draft.asked_at(drop_key(qos))
    is_newer = made is not None and (dropped is None or dropped < made)
    return is_newer and is_under_way(make_key(qos), picture, draft)


def is_under_way(key: Key, picture: Accounting, draft: Draft) -> bool:
    """Return whether the picture may not show yet what became of this change; if so, look again in time."""
    asked = draft.asked_at(key)
    if asked is None or picture.at >= asked + SETTLE_S:
        return False
    draft.wake(asked + SETTLE_S)
    return True
