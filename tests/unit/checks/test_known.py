"""The catalogue as a whole: what a site may name, and what is said of a name that there is none of."""

import dataclasses
import tomllib

import pytest

from steward.checks import CHECKS, known
from steward.checks.known import limits_of
from steward.checks.limits import WORDS, Limits


def said(text: str) -> tuple[str, ...]:
    return known.problems(tomllib.loads(text)["checks"])


def test_the_defaults_are_right_and_every_check_has_a_mode() -> None:
    modes = known.modes(Limits())
    assert known.problems({}) == ()
    assert set(modes) == {*(check.id for check in CHECKS), "site", "site.*", "kernel_log", "kernel_log.*"}
    assert set(modes.values()) <= set(WORDS)
    assert (modes["os.dstate"], modes["fs.shared"], modes["disk"]) == ("drain", "report", "drain")
    assert (modes["clock"], modes["site"], modes["kernel_log"]) == ("report", "report", "drain")


def test_a_check_has_its_own_mode_else_that_of_the_longest_pattern() -> None:
    tables = {"gpu.*": "off", "gpu.ecc.*": "report", "gpu.ecc.ce": "drain", "os.*": "off"}
    modes = known.modes(limits_of({id: {"mode": word} for id, word in tables.items()}))
    assert (modes["gpu.temp"], modes["gpu.ecc.dbe_vol"], modes["gpu.ecc.ce"]) == ("off", "report", "drain")
    assert (modes["gpu"], modes["os.files"], modes["mem.free"]) == ("drain", "off", "report")


@pytest.mark.parametrize("id", ["gpu", "disk", "clock"])
def test_the_table_of_a_check_never_speaks_for_its_family(id: str) -> None:
    mine, theirs = known.modes(limits_of({id: {"mode": "off"}})), known.modes(Limits())
    others = [check.id for check in CHECKS if check.id != id]
    assert {one: mine[one] for one in others} == {one: theirs[one] for one in others}
    assert mine[id] == "off"


def test_a_check_of_another_versions_agent_drains_no_more_than_the_check_that_its_id_begins_with() -> None:
    assert known.mode_of(limits_of({"gpu": {"mode": "report"}}))("gpu.new") == "report"
    assert known.mode_of(limits_of({"gpu": {"mode": "report"}, "gpu.*": {"mode": "off"}}))("gpu.new") == "off"


def test_the_tables_of_lines_and_files_speak_for_those_without_one_of_their_own() -> None:
    tables = {"site": {"mode": "drain"}, "kernel_log": {"mode": "report"}, "site.a": {"mode": "off"}}
    mode = known.mode_of(limits_of(tables))
    assert (mode("site.a"), mode("site.b"), mode("kernel_log.xid79")) == ("off", "drain", "report")
    default = known.mode_of(Limits())
    assert (default("site.a"), default("kernel_log.xid79"), default("gone.check")) == ("report", "drain", "drain")


@pytest.mark.parametrize(
    "text",
    [
        '[checks."ib.flap"]\nmode = "off"\ndowns_per_hour = 9',
        "[checks.ib.flap]\nmode = 'off'\ndowns_per_hour = 9",
        "[checks]\nib.flap.mode = 'off'\nib.flap.downs_per_hour = 9",
    ],
)
def test_the_dots_of_an_id_may_be_quoted_or_not(text: str) -> None:
    assert said(text) == ()
    limits = limits_of(tomllib.loads(text)["checks"])
    assert (limits.modes, limits.values) == ({"ib.flap": "off"}, {"ib.flap.downs_per_hour": 9})


@pytest.mark.parametrize(
    "text",
    [
        '[checks."deep.stress"]\nmode = "report"',
        '[checks."deep.*"]\nmode = "report"',
        '[checks."net.*"]\nmode = "report"\ninterfaces = ["eth0"]',
        '[checks."kernel_log.xid79"]\nmode = "report"',
        '[checks."kernel_log.soft_lockup"]\ntimes = 5',
        '[checks.site]\nmode = "drain"\ntimeout_s = 5\nnhc = "/etc/nhc/nhc.conf"',
        '[checks."site.nhc"]\nmode = "off"\nevery_s = 60\nparams = "-v"',
        "[checks.gpu]\nexpected_count = 0\n[checks.disk]\n[checks.os.load]",
        '[checks.gpu]\nexpected_count = {"gpu[1-8]" = 8, viz1 = 2}',
    ],
)
def test_what_is_right_is_taken(text: str) -> None:
    assert said(text) == ()


NONE_OF_GPU = 'there is no check `gpu.ecc`; for all of them write [checks."gpu.ecc.*"]'
ONLY_THE_MODE = "only `mode` can be set for a family; move it into the table of one check"
A_LIST = "not a host list (nothing in a list begins with '[1-'); write for example n[1-6] or gpu1,gpu[3-8]"
A_COUNT = "use a whole number from 0 to 1024 (GPUs)"
IN_ITS_TABLE = "move it into the table of its check, such as [checks.disk]"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("checks.os.dstat.mode = 'drain'", 'checks."os.dstat": there is no check `os.dstat`; did you mean os.dstate?'),
        ("[checks.zzz]", "checks.zzz: there is no check `zzz`; `steward checks` lists them"),
        ("checks.ib.mode = 'off'", 'checks.ib: there is no check `ib`; for all of them write [checks."ib.*"]'),
        ("checks.gpu.ecc.mode = 'off'", f'checks."gpu.ecc": {NONE_OF_GPU}'),
        ("[checks.'iv.*']", 'checks."iv.*": no check\'s id begins with `iv.`; did you mean ib?'),
        ("[checks.'site.*']", 'checks."site.*": set the mode of all of them in [checks.site]'),
        ("checks.'ib.*'.expected = 8", f'checks."ib.*".expected = 8: {ONLY_THE_MODE}'),
        ("checks.os.pids.mode = 'alarm'", 'checks."os.pids".mode = "alarm": use "off", "report" or "drain"'),
        ("checks.os.pids.mode = []", 'checks."os.pids".mode = []: use "off", "report" or "drain"'),
        ("checks.os.pids.percnt = 95", 'checks."os.pids".percnt = 95: unknown key; did you mean percent?'),
        ("checks.os.pids.zzz = 1", 'checks."os.pids".zzz = 1: unknown key; it has mode, percent'),
        ("checks.os.pids.percent = 101", 'checks."os.pids".percent = 101: use a number from 1 to 100 (%)'),
        ("checks.os.pids.percent = true", 'checks."os.pids".percent = true: use a number from 1 to 100 (%)'),
        ("checks.os.pids.percent = nan", 'checks."os.pids".percent = NaN: use a number from 1 to 100 (%)'),
        (
            "checks.gpu.expected_count = 8.5",
            f"checks.gpu.expected_count = 8.5: {A_COUNT}",
        ),
        ("checks.gpu.expected_count.'n[1-' = 8", f'checks.gpu.expected_count."n[1-": {A_LIST}'),
        ("checks.gpu.expected_count.n1 = 'a'", f'checks.gpu.expected_count."n1" = "a": {A_COUNT}'),
        (
            "checks.gpu.expected_count = {'n[1-3]' = 8, n2 = 1}",
            "checks.gpu.expected_count: n2 is named twice; remove one",
        ),
        (
            "checks.gpu.expected_count = {}",
            'checks.gpu.expected_count: name nodes and a number for them, such as "gpu[1-8]" = 8',
        ),
        ("checks.disk.paths = '/'", 'checks.disk.paths = "/": use a list of strings'),
        ("checks.disk.paths = ['/', '/']", 'checks.disk.paths = ["/", "/"]: a name is listed twice; remove one'),
        ("checks.site.nhc = 1", "checks.site.nhc = 1: use a string"),
        ("checks.disk = 3", f"checks.disk = 3: {IN_ITS_TABLE}"),
        ("checks.disk.clear_percent = 95", "checks.disk.clear_percent = 95: use at most checks.disk.full_percent (90)"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_remedy(text: str, line: str) -> None:
    assert said(text) == (line,)


def test_a_number_may_be_said_for_some_nodes_only() -> None:
    """A site of unlike nodes has one settings file."""
    text = "[checks.gpu]\nexpected_count = {'gpu[1-8]' = 8, viz1 = 2}\n[checks.disk]\nfull_percent = 95"
    limits = limits_of(tomllib.loads(text)["checks"])
    there = {node: limits.at(node).values.get("gpu.expected_count") for node in ("gpu7", "viz1", "cpu1")}
    assert there == {"gpu7": 8, "viz1": 2, "cpu1": None}
    assert limits.at("cpu1").values["disk.full_percent"] == 95
    assert known.in_force(tomllib.loads(text)["checks"])["gpu"]["expected_count"] == {"gpu[1-8]": 8, "viz1": 2}


def test_what_is_said_in_both_ways_to_write_it_is_refused() -> None:
    text = "checks.os.pids.percent = 70\nchecks.'os.pids'.percent = 80"
    assert said(text) == ('checks."os.pids".percent: set twice; remove one',)


def test_every_setting_can_be_said_and_its_default_is_right() -> None:
    tables = known.in_force({})
    said = {id: {key: value for key, value in table.items() if value is not None} for id, table in tables.items()}
    assert known.problems(said) == ()
    limits = limits_of(said)
    assert set(known.SETTINGS) - {"gpu.expected_count"} == set(limits.values)
    assert {id: known.modes(limits)[id] for id in known.OWN_MODES} == known.OWN_MODES


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
        assert one.default is None or one.low <= one.default <= one.high, one.name
        assert one.unit, one.name
        assert one.text.endswith("."), one.name
