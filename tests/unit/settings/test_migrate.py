"""A settings file of an earlier version: it still serves, each old key is told, and it can be rewritten."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import BaseModel

from steward.adapters.settings_file import desired, load, migrated, rewrite, wrong_names
from steward.agent.config import ConfigError
from steward.agent.config import load as load_agent
from steward.checks.known import SETTINGS
from steward.cli import main
from steward.model.former_settings import FORMER, Former
from steward.model.settings import Settings, SettingsError, parse
from steward.model.settings.errors import section_of
from steward.model.settings.migrate import ByHand, migration

OLD = """\
# Ours: concurrent_most was 5 until spring, "{node}" is a node.
[provider.static]
spares = "n9"
reboot_command = [  # asks the BMC
    "/sbin/power",
    "cycle", "{node}", # its name
    "--log={node}.{node}",
]

[repair] # careful
# At most
concurrent_most=7   # repairs at once
mode = 'act'

[[groups]]
name = "a"
nodes = "n1"
provider = "static"

[checks.mode]
"os.uptime" = "off"  # freshly booted nodes
os.load = "off"
sec.etc = "off"

[health]
canary_nodes = 3
"""
NEW = """\
# Ours: concurrent_most was 5 until spring, "{node}" is a node.
[provider.static]
spares = "n9"
reboot = [  # asks the BMC
    "/sbin/power",
    "cycle", "%n", # its name
    "--log=%n.%n",
]

[repair] # careful
# At most
concurrent_all_count=7   # repairs at once
mode = 'act'

[[groups]]
name = "a"
nodes = "n1"
provider = "static"

[checks."os.load"]
mode = "off"

[health]
canary_node_count = 3
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    file = tmp_path / "steward.toml"
    file.write_text(OLD)
    return file


def test_only_old_keys_change_and_comments_and_order_stay() -> None:
    assert migration(OLD).text == NEW


def test_each_change_is_one_line_with_the_key_and_what_became_of_it() -> None:
    assert migration(OLD).lines == (
        "provider.static.reboot_command: its name is reboot now, and {node} in it is %n",
        "health.canary_nodes: its name is canary_node_count now",
        "repair.concurrent_most: its name is concurrent_all_count now",
        "checks.mode.os.uptime: not in use any more: the check is gone, as a site's own tools say the same",
        "checks.mode.sec.etc: not in use any more: the check is gone, as a site's own tools say the same",
        'checks.mode.os.load: it is mode of [checks."os.load"] now',
    )


def test_a_second_time_there_is_nothing_to_change() -> None:
    assert migration(NEW).lines == ()
    assert migration(NEW).text == NEW


@pytest.mark.parametrize("text", ["quota = { edits = 3 }\n", "quota.edits = 3\n", '["quota"]\r\n"edits" = 3\r\n'])
def test_a_key_is_found_in_every_way_to_write_it(text: str) -> None:
    new = migration(text).text
    assert tomllib.loads(new) == {"quota": {"edits_at_once": 3}}
    assert new == text.replace("edits", "edits_at_once")


@pytest.mark.parametrize(
    "text",
    ["checks.mode.os.uptime = 'off'", "[checks]\nmode.os.uptime = 'off'", "[checks.mode.os]\nuptime = 'off'"],
)
def test_the_mode_of_a_check_that_is_gone_goes(text: str) -> None:
    assert migration(text).lines
    assert "uptime" not in migration(text).text


def test_what_only_a_person_can_change_is_said_and_left() -> None:
    with pytest.raises(ByHand, match=r"checks\.mode\.os\.uptime.*only a person"):
        migration("checks.mode = {'os.uptime' = 'off', 'os.load' = 'off'}")


@pytest.mark.parametrize("former", FORMER, ids=lambda former: former.key)
def test_what_a_key_became_is_a_key_of_today_and_its_old_name_is_none(former: Former) -> None:
    *tables, name = former.key.split(".")
    if not former.now:
        assert former.why
        return
    if former.tables:
        assert {f"{id}.{former.now}" for _, id in former.tables} <= set(SETTINGS)
        return
    here: type[BaseModel] | None = Settings
    for table in tables:
        assert here is not None
        here = section_of(here.model_fields[table].annotation)
    assert here is not None
    assert former.now in here.model_fields
    assert name not in here.model_fields


def test_an_old_file_serves_the_head_and_tells_each_old_key_with_what_to_do(
    old: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = load(old, {})
    assert (settings.repair.concurrent_all_count, settings.health.canary_node_count) == (7, 3)
    assert settings.provider.static is not None
    assert settings.provider.static.reboot == ("/sbin/power", "cycle", "%n", "--log=%n.%n")
    assert "os.uptime" not in desired(settings).modes
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 6
    assert all(
        line.startswith(f"{old}: ") and line.endswith("`steward config migrate` rewrites the file") for line in lines
    )


def test_an_old_file_serves_an_agent_in_the_same_way(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = load_agent(old, {})
    assert config.health.canary_node_count == 3
    assert config.checks.modes == {"os.load": "off"}
    assert len(caplog.records) == 6


CHECKS_OLD = """\
[checks.disk]
mode = "drain"  # ours

[checks.mounts] # local
writable = ["/"]
shared = ["/home"] # NFS

# Words for checks
[checks.mode]
# too loud
os.load = "off"
ib = "report" # the fabric is new
disk = "report"
"ib.flap" = "drain"

# numbers
[checks.limit]
"ib.flap.downs_per_hour" = 9 # old cables
os.pids.percent = 70

[checks.services]
units = [
  "a.service", # a
  "b.service",
]

[checks.site]
mode = "report"
[checks.site.modes]
nhc = "drain"
[checks.site.every_s]
nhc = 60
"""
CHECKS_NEW = """\
[checks.disk]
mode = "report"  # ours

[checks.mounts] # local
writable = ["/"]

[checks."fs.shared"]
paths = ["/home"] # NFS

# Words for checks
[checks."os.load"]
# too loud
mode = "off"

[checks."ib.*"]
mode = "report" # the fabric is new

[checks."disk.*"]
mode = "report"

# numbers
[checks."ib.flap"]
downs_per_hour = 9 # old cables
mode = "drain"

[checks."os.pids"]
percent = 70

[checks."svc.units"]
units = [
  "a.service", # a
  "b.service",
]

[checks.site]
mode = "report"
[checks."site.nhc"]
mode = "drain"
every_s = 60
"""


def test_the_settings_of_checks_move_into_a_table_for_each_check() -> None:
    assert migration(CHECKS_OLD).text.rstrip("\n") == CHECKS_NEW.rstrip("\n")
    assert migration(CHECKS_NEW).lines == ()


def test_each_setting_that_moves_is_one_line_with_its_new_place() -> None:
    assert migration(CHECKS_OLD).lines == (
        'checks.services.units: it is units of [checks."svc.units"] now',
        'checks.mounts.shared: it is paths of [checks."fs.shared"] now',
        'checks.site.modes.nhc: it is mode of [checks."site.nhc"] now',
        'checks.site.every_s.nhc: it is every_s of [checks."site.nhc"] now',
        'checks.limit.ib.flap.downs_per_hour: it is downs_per_hour of [checks."ib.flap"] now',
        'checks.limit.os.pids.percent: it is percent of [checks."os.pids"] now',
        'checks.mode.os.load: it is mode of [checks."os.load"] now',
        'checks.mode.ib: it is mode of [checks."ib.*"] now',
        'checks.mode.disk: it is mode of [checks."disk.*"] and of [checks.disk] now',
        'checks.mode.ib.flap: it is mode of [checks."ib.flap"] now',
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("checks.mode.os.load = 'off'", "[checks.\"os.load\"]\nmode = 'off'\n"),
        ("[checks]\nmode.os.load = 'off' # x\n", "[checks]\n\n[checks.\"os.load\"]\nmode = 'off' # x\n"),
        ("[checks.limit.os.pids]\r\npercent = 7_0\r\n", '[checks."os.pids"]\r\npercent = 7_0\r\n\r\n'),
        ("[checks.limit]\n[checks.mode]\nos.load = 1\n[quota]\n", '[checks."os.load"]\nmode = 1\n\n[quota]\n'),
        ("checks.limit = { \"os.pids.percent\" = 70 }\n", '[checks."os.pids"]\npercent = 70\n'),
        ("[checks.os.pids]\nmode = 'off' # a\n\n[checks.limit]\nos.pids.percent = 70\n",
         "[checks.os.pids]\nmode = 'off' # a\npercent = 70\n\n"),
    ],
)  # fmt: skip
def test_a_setting_of_a_check_is_found_in_every_way_to_write_it(old: str, new: str) -> None:
    assert migration(old).text == new


def test_a_file_that_did_not_run_does_not_run_when_its_word_moves() -> None:
    old = "[checks.site]\nmode = 'off'\n[checks.mode]\nsite.a = 'drain' # once\n"
    assert tomllib.loads(migration(old).text) == {"checks": {"site": {"mode": "off"}, "site.a": {"mode": "off"}}}


def test_what_stands_in_one_line_with_others_is_for_a_person() -> None:
    with pytest.raises(ByHand, match=r"checks\.mode\.os\.load: it is mode of .*only a person"):
        migration("checks.mode = {'os.load' = 'off', 'os.pids' = 'off'}")


TWICE = "[checks.mode]\nos.load = 'off'\n[checks.os.load]\nmode = 'drain'\n"


def test_a_setting_of_a_check_in_its_old_and_its_new_place_is_an_error_for_everyone(tmp_path: Path) -> None:
    file = tmp_path / "steward.toml"
    file.write_text(TWICE)
    line = 'checks.mode.os.load: it is mode of [checks."os.load"] now, which is there as well: remove one of the two'
    for read in (load, load_agent, migrated):
        with pytest.raises((SettingsError, ConfigError)) as refused:
            read(file, {})
        assert str(refused.value) == f"{file}: {line}"


def test_a_check_in_an_old_table_that_there_is_none_of_is_still_refused() -> None:
    with pytest.raises(SettingsError, match=r'checks\."os\.lod": there is no check `os\.lod`; did you mean os\.load\?'):
        _judged_text("[checks.mode]\nos.lod = 'off'\n")


def _judged_text(text: str) -> None:
    settings = parse(text, source="steward.toml", env={})
    if problems := wrong_names(settings):
        raise SettingsError("steward.toml", problems)


BOTH = "[health]\ncanary_nodes = 3\ncanary_node_count = 4\n"
CLASH = "health.canary_nodes: its name is canary_node_count now, which is there as well: remove one of the two"


def test_an_old_key_beside_its_new_name_is_an_error_for_everyone(tmp_path: Path) -> None:
    file = tmp_path / "steward.toml"
    file.write_text(BOTH)
    for read in (load, load_agent, migrated):
        with pytest.raises((SettingsError, ConfigError)) as refused:
            read(file, {})
        assert str(refused.value) == f"{file}: {CLASH}"


def test_the_value_of_an_old_key_is_judged_as_that_of_the_new_one() -> None:
    with pytest.raises(SettingsError, match=r"health\.canary_node_count = -1: use a number from 0 to 10000"):
        parse("[health]\ncanary_nodes = -1", source="steward.toml", env={})


def test_the_old_file_is_kept_and_both_have_its_mode_and_owner(old: Path) -> None:
    old.chmod(0o640)
    kept = rewrite(old, {}, NEW)
    assert (kept.read_text(), old.read_text()) == (OLD, NEW)
    assert [file.stat().st_mode & 0o777 for file in (kept, old)] == [0o640, 0o640]
    assert {(file.stat().st_uid, file.stat().st_gid) for file in (kept, old)} == {(os.getuid(), os.getgid())}
    assert sorted(old.parent.iterdir()) == [old, kept]


def test_an_earlier_kept_file_is_not_lost(old: Path) -> None:
    assert rewrite(old, {}, NEW) != rewrite(old, {}, OLD)


def test_a_link_to_the_file_stays_a_link(old: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(old)
    rewrite(link, {}, NEW)
    assert link.is_symlink()
    assert old.read_text() == NEW


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{OLD}[repiar]\n", "repiar = ...: unknown key; did you mean repair?"),
        (f"{OLD}canary_h = -1\n", "health.canary_h = -1: use a number from 0 to 720"),
        (f"{OLD}[head\n", "not TOML"),
        (BOTH, CLASH),
    ],
)
def test_a_file_that_is_wrong_stays_as_it_is(tmp_path: Path, text: str, line: str) -> None:
    file = tmp_path / "steward.toml"
    file.write_text(text)
    told = CliRunner().invoke(main, ["config", "migrate", str(file)])
    assert told.exit_code == 1
    assert f"{file}: {line}" in told.output
    assert told.output.endswith("Nothing was changed.\n")
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def _steward(*words: str | Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from steward.cli import main; main()", *map(str, words)]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_from_the_first_look_to_nothing_left_to_do(old: Path) -> None:
    checked = _steward("config", "check", "--offline", "--config", old)
    assert checked.returncode == 0
    assert f"{old}: health.canary_nodes: its name is canary_node_count now; `steward config migrate`" in checked.stderr

    looked = _steward("config", "migrate", "--dry-run", old)
    assert looked.stdout.splitlines()[-1] == f"{old}: not changed (--dry-run)"
    assert old.read_text() == OLD

    done = _steward("config", "migrate", old)
    assert done.returncode == 0
    assert (
        done.stdout.splitlines()[:-1]
        == looked.stdout.splitlines()[:-1]
        == [f"{old}: {line}" for line in migration(OLD).lines]
    )
    assert done.stdout.splitlines()[-1] == f"{old}: rewritten; the old file is {old}.before-migrate"
    assert old.read_text() == NEW

    again = _steward("--config", old, "config", "migrate")
    assert (again.returncode, again.stdout) == (0, f"{old}: nothing to change\n")
    assert _steward("config", "check", "--offline", "--config", old).stderr == ""
