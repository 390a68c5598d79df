"""Every check as people read of it: what it detects, where it looks, how often, by which numbers, in what mode."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from steward.checks import CHECKS, kernel_log
from steward.checks.check import Check, Threshold
from steward.checks.limits import Limits

_ITS_OWN = "default"
_MODES = "[checks.mode]"
_DEFAULTS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A limit in force. `by`: `default`, or the table of the settings that says another one."""

    name: str
    value: float
    default: float
    unit: str
    text: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCheck:
    """`mode_by` as `Number.by`. `every_s` 0: whenever something happens. `cost_ms`: CPU time of one look, about."""

    id: str
    title: str
    source: str
    every_s: float
    timeout_s: float
    cost_ms: float
    mode: str
    mode_by: str
    numbers: tuple[Number, ...]


def catalogue(limits: Limits, interval_s: float) -> tuple[ListedCheck, ...]:
    """Every check that there is, the kernel log's lines as one. `interval_s` is of those without one of their own."""
    return (*(_listed(check, limits, interval_s) for check in CHECKS), _kernel_log(limits))


def site_check(id: str, limits: Limits, interval_s: float) -> ListedCheck:
    """One of the site's own, or any other that agents tell of and that is not listed."""
    name = id.removeprefix("site.")
    is_named = name in limits.site.modes
    return ListedCheck(
        id=id,
        title="a check of the site's own",
        source="command",
        every_s=limits.site.every_s.get(name, interval_s),
        timeout_s=limits.site.timeout_s,
        cost_ms=0.0,
        mode=limits.site.modes.get(name, limits.site.mode),
        mode_by="[checks.site.modes]" if is_named else _by_table("site", limits),
        numbers=(),
    )


def _listed(check: Check, limits: Limits, interval_s: float) -> ListedCheck:
    return ListedCheck(
        id=check.id,
        title=check.title,
        source=check.source,
        every_s=check.every_s if check.every_s is not None else interval_s,
        timeout_s=check.timeout_s,
        cost_ms=check.cost_ms,
        mode=check.mode(limits),
        mode_by=_mode_by(check, limits),
        numbers=(*_of_table(check.id, limits), *(_number(one, limits.limit) for one in check.thresholds)),
    )


def _kernel_log(limits: Limits) -> ListedCheck:
    return ListedCheck(
        id=kernel_log.FAMILY,
        title=f"a line of the kernel log that tells of a fault ({len(kernel_log.SIGNATURES)} signatures)",
        source="kmsg",
        every_s=0.0,
        timeout_s=0.0,
        cost_ms=0.1,
        mode=limits.kernel_log.mode,
        mode_by=_by_table("kernel_log", limits),
        numbers=tuple(_number(one, limits.limit) for one in kernel_log.THRESHOLDS),
    )


def _mode_by(check: Check, limits: Limits) -> str:
    if check.mode(limits) == check.mode(_DEFAULTS):
        return _ITS_OWN
    by_table = _by_table(check.id, limits)
    return by_table if by_table != _ITS_OWN else _MODES


def _by_table(name: str, limits: Limits) -> str:
    """Whether the check's own table of the settings says another mode."""
    said, own = (getattr(getattr(each, name, None), "mode", None) for each in (limits, _DEFAULTS))
    return f"[checks.{name}]" if said != own else _ITS_OWN


def _of_table(name: str, limits: Limits) -> Iterator[Number]:
    """The numbers of the check's own table."""
    table, own = getattr(limits, name, None), getattr(_DEFAULTS, name, None)
    if table is None or not is_dataclass(table):
        return
    for field in fields(table):
        value, default = getattr(table, field.name), getattr(own, field.name)
        if isinstance(value, float | int) and not isinstance(value, bool):
            yield _of_field(name, field.name, float(value), default)


def _of_field(table: str, name: str, value: float, default: Any) -> Number:
    is_own = value == default
    return Number(
        name=f"{table}.{name}",
        value=value,
        default=float(default) if default is not None else 0.0,
        unit=name.rpartition("_")[2],
        text="",
        by=_ITS_OWN if is_own else f"[checks.{table}]",
    )


def _number(threshold: Threshold, said: Mapping[str, float]) -> Number:
    return Number(
        name=threshold.name,
        value=said.get(threshold.name, threshold.default),
        default=threshold.default,
        unit=threshold.unit,
        text=threshold.text,
        by="[checks.limit]" if threshold.name in said else _ITS_OWN,
    )
