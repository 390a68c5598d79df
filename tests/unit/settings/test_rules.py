"""Combinations that cannot work are refused, with the key to change and why."""

import pytest

from steward.model.settings import SettingsError, parse

_GROUP = '[[groups]]\nname="{0}"\nnodes="{1}"\nprovider="{2}"\n'

IMPOSSIBLE = [
    ("head.state_dir", '[head]\nstate_dir="var/steward"'),
    ("agent.socket", '[agent]\nsocket="agent.sock"'),
    ("head.http", '[head]\nlisten="0.0.0.0:7000"\nhttp="127.0.0.1:7000"'),
    ("head.http", '[head]\nhttp="0.0.0.0:6860"'),
    ("head.http", '[head]\nhttp="head1:6860"'),
    ("api.tls_certificate", '[api]\ntls_certificate="/etc/steward/cert.pem"'),
    ("api.tls_key", '[api]\ntls_key="/etc/steward/key.pem"'),
    ("health.bad_samples", "[health]\nbad_samples=4"),
    ("resume.ask_deadline_s", "[resume]\nask_deadline_s=5"),
    ("repair.breaker_percent", "[repair]\nbreaker_percent=1"),
    ("repair.breaker_min", "[repair]\nconcurrent_min=3"),
    ("agent.hold_head_absent_s", "[agent]\nhold_head_absent_s=1"),
    ("groups[1].name", _GROUP.format("a", "n1", "static") + _GROUP.format("a", "n2", "static")),
    ("groups[1].nodes", _GROUP.format("a", "n[1-3]", "static") + _GROUP.format("b", "n3", "static")),
    ("provider.static.spares", _GROUP.format("a", "n[1-3]", "static") + '[provider.static]\nspares="n3,s1"'),
    ("provider.static.spares", '[provider.static]\nspares="s1"'),
    ("groups[0].provider", _GROUP.format("a", "n1", "local")),
    ("provider.statik", '[provider.statik]\nspares="s1"'),
    ("capacity.provider", '[capacity]\nprovider="static"'),
    ("capacity.provider", '[capacity]\nprovider="power"'),
    ("capacity.provider", '[capacity]\nprovider="command"'),
    ("provider.ec2.launch_template", '[provider.ec2]\nregion="us-east-1"\ncluster="c"\nimage="ami-12345678"'),
    (
        "provider.ec2.tags",
        '[provider.ec2]\nregion="r"\ncluster="c"\nlaunch_template="t-1"\n[provider.ec2.tags]\n"steward:node"="x"',
    ),
]


@pytest.mark.parametrize(
    ("key", "text"), IMPOSSIBLE, ids=[f"{number} {key}" for number, (key, _) in enumerate(IMPOSSIBLE)]
)
def test_an_impossible_combination_is_refused_at_its_key(key: str, text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse(text, source="steward.toml", env={})
    assert [problem.key for problem in refused.value.problems] == [key]
    assert "use " in str(refused.value)


def test_no_hold_at_all_while_the_head_is_away_is_possible() -> None:
    assert parse("[agent]\nhold_head_absent_s=0", source="f", env={}).agent.hold_head_absent_s == 0


@pytest.mark.parametrize("kind", ["static", "power"])
def test_some_providers_need_no_table(kind: str) -> None:
    assert parse(_GROUP.format("a", "n1", kind), source="f", env={}).groups[0].provider == kind


def test_a_group_may_use_a_provider_that_has_its_table() -> None:
    text = _GROUP.format("a", "n1", "local") + '[provider.local]\ndir="/tmp/bed"'
    assert parse(text, source="f", env={}).provider.brought["local"] == {"dir": "/tmp/bed"}


@pytest.mark.parametrize(
    "text",
    [
        '[head]\nhttp="[::1]:6860"',
        '[head]\nhttp="localhost:6860"',
        '[head]\nhttp="0.0.0.0:6860"\n[api]\nallow_plain_http=true',
        '[head]\nhttp="0.0.0.0:6860"\n[api]\ntls_certificate="/c"\ntls_key="/k"',
    ],
)
def test_http_may_stay_on_loopback_or_have_a_certificate_or_be_plain_on_purpose(text: str) -> None:
    assert parse(text, source="f", env={}).head.http
