"""A file of an earlier version means what it meant: every check has the mode and the numbers that it had."""

import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.checks import CHECKS, kernel_log
from steward.checks.known import OWN_MODES, SETTINGS, mode_of, problems
from steward.checks.limits import WORDS, Limits, Threshold, limits_of
from steward.model.former_settings import FAMILIES, in_todays_words
from steward.model.settings.migrate import migration

TABLES = ("slurmd", "disk", "mounts", "memory", "kernel_log", "gpu", "clock", "site")
"""What had a `mode` in a table of its own; what `[checks.mode]` said of these was refused, but for a family's name."""
IDS = tuple(check.id for check in CHECKS if check.id not in TABLES)
LINES = ("kernel_log.xid79", "kernel_log.oops")
FILES = ("scratch", "a.b", "nhc")
LIMITS = tuple(
    one.name
    for one in (*(one for check in CHECKS for one in check.settings), *kernel_log.THRESHOLDS)
    if isinstance(one, Threshold) and one.id not in TABLES
)
WORD = st.sampled_from(WORDS)


def some(names: tuple[str, ...], values: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(names), values, max_size=8)


Said = dict[str, dict[str, str]]
OLD: st.SearchStrategy[Said] = st.fixed_dictionaries(
    {
        "tables": some(TABLES, WORD),
        "mode": some((*IDS, *sorted(FAMILIES), *LINES, *(f"site.{name}" for name in FILES)), WORD),
        "modes": some(FILES, WORD),
        "limit": some(LIMITS, st.just("")).map(lambda found: {name: f"{_within(name):g}" for name in found}),
    }
)


def _within(name: str) -> float:
    setting = SETTINGS[name]
    assert isinstance(setting, Threshold)
    return min(setting.high, setting.low + 3)


def written(said: Said) -> str:
    heads = [f"[checks.{table}]\nmode = '{word}'\n" for table, word in said["tables"].items()]
    parts = {"mode": said["mode"], "site.modes": said["modes"]}
    words = [
        "\n".join((f"[checks.{name}]", *(f'"{k}" = "{v}"' for k, v in p.items()), "")) for name, p in parts.items()
    ]
    numbers = "\n".join(("[checks.limit]", *(f'"{name}" = {value}' for name, value in said["limit"].items()), ""))
    return "\n".join((*heads, *words, numbers))


def nearest(check: str, said: dict[str, str]) -> str | None:
    """As it was: an entry spoke for all that begins so."""
    name = check
    while name and name not in said:
        name = name.rpartition(".")[0]
    return said.get(name)


def as_it_was(check: str, said: Said) -> str:
    """`off` where the agent did not run it, else what the head took it for: `[checks.mode]` before any table."""
    table = {**{id: OWN_MODES[id] for id in TABLES}, **said["tables"]}
    first, _, file = check.partition(".")
    if check in TABLES:
        return "off" if table[check] == "off" else said["mode"].get(check, table[check])
    if first == "site":
        own = said["modes"].get(file, table["site"])
        return "off" if own == "off" else said["mode"].get(check, own)
    if first == "kernel_log":
        return said["mode"].get(check, table["kernel_log"])
    return nearest(check, said["mode"]) or OWN_MODES[check]


def read(text: str) -> Limits:
    tables = in_todays_words(tomllib.loads(text), lambda line: None).get("checks", {})
    assert problems(tables) == ()
    return limits_of(tables)


@settings(max_examples=400)
@given(OLD)
def test_every_check_has_the_mode_and_the_numbers_that_it_had(said: Said) -> None:
    limits = read(written(said))
    mode = mode_of(limits)
    every = (*TABLES, *IDS, *LINES, *(f"site.{name}" for name in FILES))
    assert {check: mode(check) for check in every} == {check: as_it_was(check, said) for check in every}
    assert limits.said == {name: float(value) for name, value in said["limit"].items()}


@given(OLD)
def test_the_rewritten_file_says_the_same_and_nothing_of_the_old_is_left(said: Said) -> None:
    new = migration(written(said))
    assert read(new.text) == read(written(said))
    assert migration(new.text).lines == ()
    for table in ("[checks.mode]", "[checks.limit]", "[checks.site.modes]") if new.lines else ():
        assert table not in new.text
