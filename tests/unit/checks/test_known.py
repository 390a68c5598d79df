"""The catalogue as a whole: what a site may name, and what is said of a name that there is none of."""

import dataclasses

import pytest

from steward.checks import CHECKS, known
from steward.checks.check import WORDS
from steward.checks.limits import ClockLimits, Limits


def said(mode: dict[str, str] | None = None, limit: dict[str, float] | None = None) -> tuple[str, ...]:
    return known.problems(dataclasses.replace(Limits(), mode=mode or {}, limit=limit or {}))


def test_the_defaults_are_right_and_every_check_has_a_mode() -> None:
    modes = known.modes(Limits())
    assert said() == ()
    assert set(modes) == {check.id for check in CHECKS}
    assert set(modes.values()) <= set(WORDS)
    assert (modes["os.dstate"], modes["fs.shared"], modes["disk"]) == ("drain", "report", "drain")


def test_a_word_for_a_check_or_its_family_or_its_own_table_decides() -> None:
    limits = dataclasses.replace(Limits(), mode={"os": "off", "os.files": "drain"}, clock=ClockLimits(mode="drain"))
    modes = known.modes(limits)
    assert (modes["os.dstate"], modes["os.files"], modes["clock"]) == ("off", "drain", "drain")
    assert modes["clock.sync"] == "report"


@pytest.mark.parametrize("name", ["os.dstate", "os", "kernel_log.xid79", "site.scratch", "fs"])
def test_a_check_a_family_and_what_only_the_node_knows_may_be_named(name: str) -> None:
    assert said({name: "report"}) == ()


@pytest.mark.parametrize(
    ("name", "word", "remedy"),
    [
        ("os.dstat", "drain", "no check and no family has that name; did you mean os.dstate?"),
        ("zzz", "off", "no check and no family has that name; `steward checks` lists them"),
        ("os.pids", "alarm", 'use "off", "report" or "drain"'),
        ("memory", "off", 'it has a table of its own; write mode = "off" in [checks.memory]'),
        ("site", "off", 'it has a table of its own; write mode = "off" in [checks.site]'),
    ],
)
def test_a_mode_that_says_nothing_is_told_with_its_remedy(name: str, word: str, remedy: str) -> None:
    assert said({name: word}) == (f'checks.mode."{name}" = "{word}": {remedy}',)


def test_a_threshold_that_is_none_or_beyond_sense_is_told_with_its_remedy() -> None:
    assert said(limit={"os.pids.percent": 95.0}) == ()
    assert said(limit={"os.pids.percnt": 95.0}) == (
        'checks.limit."os.pids.percnt" = 95: no check has such a threshold; did you mean os.pids.percent?',
    )
    assert said(limit={"os.pids.percent": 101.0}) == (
        'checks.limit."os.pids.percent" = 101: use a number from 1 to 100 (%)',
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_says_what_it_detects_where_and_at_what_cost(check: object) -> None:
    assert dataclasses.is_dataclass(check)
    one = next(each for each in CHECKS if each is check)
    assert one.title
    assert one.source
    assert 0 < one.cost_ms < 1000


def test_thresholds_are_unique_begin_with_their_checks_id_and_keep_their_own_range() -> None:
    own = [(check, one) for check in CHECKS for one in check.thresholds]
    assert len({one.name for _, one in own}) == len({id(one) for _, one in own})
    for check, one in own:
        assert one.name.startswith(check.id.split(".")[0]), one.name
        assert one.low <= one.default <= one.high, one.name
        assert one.unit, one.name
        assert one.text.endswith("."), one.name
