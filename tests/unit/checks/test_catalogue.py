"""The list of checks: each is told with its numbers, its mode, and where a site set them."""

from pathlib import Path

import pytest

from steward.checks import CHECKS
from steward.checks.catalogue import ListedCheck, catalogue, site_check
from steward.checks.check import Check
from steward.checks.known import limits_of
from steward.checks.limits import Limits

PAGE = (Path(__file__).parents[3] / "docs" / "checks.md").read_text()


def of(id: str, limits: Limits | None = None) -> ListedCheck:
    return next(one for one in catalogue(limits or Limits(), 15.0) if one.id == id)


def test_every_check_says_what_it_detects_where_it_looks_and_what_it_costs() -> None:
    listed = catalogue(Limits(), 15.0)
    assert len({one.id for one in listed}) == len(CHECKS) + 1
    assert [one.id for one in listed if not (one.title and one.source and one.cost_ms > 0)] == []
    assert [one.id for one in listed if one.mode not in ("off", "report", "drain") or one.mode_by != "default"] == []


def test_a_mode_says_where_it_was_set() -> None:
    assert (of("ib.flap").mode, of("ib.flap").mode_by) == ("drain", "default")
    family = of("ib.flap", limits_of({"ib.*": {"mode": "report"}}))
    assert (family.mode, family.mode_by) == ("report", '[checks."ib.*"]')
    own = of("ib.flap", limits_of({"ib.*": {"mode": "report"}, "ib": {"flap": {"mode": "off"}}}))
    assert (own.mode, own.mode_by) == ("off", '[checks."ib.flap"]')
    table = of("disk", limits_of({"disk": {"mode": "off"}}))
    assert (table.mode, table.mode_by) == ("off", "[checks.disk]")
    lines = of("kernel_log", limits_of({"kernel_log": {"mode": "report"}}))
    assert (lines.mode, lines.mode_by) == ("report", "[checks.kernel_log]")


def test_a_number_says_where_it_was_set() -> None:
    limits = limits_of({"disk": {"full_percent": 95.0}, "ib.flap": {"downs_per_hour": 9.0}})
    full, clear = of("disk", limits).numbers
    assert (full.name, full.value, full.default, full.unit, full.by) == (
        "disk.full_percent",
        95.0,
        90.0,
        "%",
        "[checks.disk]",
    )
    assert (clear.value, clear.by) == (80.0, "default")
    downs = next(one for one in of("ib.flap", limits).numbers if one.name == "ib.flap.downs_per_hour")
    assert (downs.value, downs.by) == (9.0, '[checks."ib.flap"]')


def test_a_period_is_the_checks_own_or_the_agents() -> None:
    assert (of("disk").every_s, of("memory").every_s, of("kernel_log").every_s) == (15.0, 3600.0, 0.0)


def test_a_check_of_the_site_has_what_its_table_says() -> None:
    limits = limits_of({"site.scratch": {"mode": "drain", "every_s": 300.0}})
    scratch, other = site_check("site.scratch", limits, 15.0), site_check("site.other", limits, 15.0)
    assert (scratch.mode, scratch.mode_by, scratch.every_s) == ("drain", '[checks."site.scratch"]', 300.0)
    assert (other.mode, other.mode_by, other.every_s) == ("report", "default", 15.0)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_the_page_names_every_check_and_every_setting(check: Check) -> None:
    assert f"`{check.id}`" in PAGE
    assert [one.name for one in check.settings if f"`{one.name}`" not in PAGE and f"`{one.key}`" not in PAGE] == []
