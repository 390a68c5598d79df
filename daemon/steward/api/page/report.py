"""The page of the report: jobs' time by user, partition and month, and the repairs."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.exceptions import HTTPException

from steward.api.page.look import Look, Paged, PageRequest
from steward.api.report_pages import ReportChoice, report_view

Json = dict[str, Any]
_MONTHS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """The report of one month.

    Sums are as in `GET /v1/report`. `months` are those to choose from, the newest first.
    """

    asked: PageRequest
    month: str
    months: tuple[str, ...]
    complete: bool
    totals: Json
    tables: tuple[tuple[str, tuple[tuple[str, Json], ...]], ...]
    jobs: Paged[Json]
    repairs: tuple[Json, ...]
    repairs_s: float


def report(look: Look, asked: PageRequest) -> ReportPage:
    """Return the report of one month (UTC), by default the present one. Raises HTTPException for a bad month."""
    months = _months(look.now)
    month = asked.word("month") or months[0]
    try:
        choice = ReportChoice.of({**dict(asked.said), "month": month}, look.now)
    except ValueError as error:
        raise HTTPException(400, str(error)) from error
    found = report_view(look.source.store, choice, look.now)
    tables = (("user", found["by_user"]), ("partition", found["by_partition"]))
    return ReportPage(
        asked=asked,
        month=month,
        months=months,
        complete=found["complete"],
        totals=found["totals"],
        tables=tuple((title, tuple(sums.items())) for title, sums in tables),
        jobs=Paged.of(sorted(found["jobs"], key=lambda one: -one["sums"]["lost_node_s"]), asked, 100),
        repairs=tuple(found["repairs"]),
        repairs_s=sum(one["out_s"] for one in found["repairs"]),
    )


def _months(now: float) -> tuple[str, ...]:
    today = datetime.fromtimestamp(now, UTC)
    since_zero = today.year * 12 + today.month - 1
    return tuple(f"{at // 12}-{at % 12 + 1:02}" for at in range(since_zero, since_zero - _MONTHS, -1))
