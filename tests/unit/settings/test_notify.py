"""`[[notify]]`: each channel has what its kind needs, and no URL or secret is ever shown."""

import json
from pathlib import Path

import pytest

from steward.adapters.settings_file import wrong_names
from steward.head.choose import make_channels
from steward.model.events import Level
from steward.model.notify import ChannelKind, ChannelRule
from steward.model.settings import Settings, SettingsError, parse
from steward.ports import Permanent

SECRET = "https://hooks.example.org/T0PSECRET"
HOOK = f'[[notify]]\nname="ops"\nkind="webhook"\nurl="{SECRET}"\n'
GROUP = '[[groups]]\nname="gpu"\nnodes="n[1-2]"\nprovider="static"\n'


def settings(text: str) -> Settings:
    return parse(text, source="steward.toml", env={})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[notify]]\nname="a"\nkind="webhook"', "notify[0] (kind webhook): give one of url and url_file"),
        (f'{HOOK}url_file="/x"', "give one of url and url_file"),
        ('[[notify]]\nname="a"\nkind="webhook"\nurl="T0PSECRET"', "notify[0].url: write http://... or https://"),
        ('[[notify]]\nname="a"\nkind="mail"', "notify[0] (kind mail): give to"),
        ('[[notify]]\nname="a"\nkind="mail"\nto=["-oQ/tmp"]', 'notify[0].to = "-oQ/tmp": use a mail address'),
        ('[[notify]]\nname="a"\nkind="command"', "notify[0] (kind command): give command"),
        ('[[notify]]\nname="a"\nkind="command"\ncommand=["tell"]', "begin with the full path of a program"),
        (HOOK + HOOK, 'notify[1].name = "ops": use a name that no other channel has'),
        (f"{HOOK}levels=[]", "at least one of info, warning and error"),
        (f'{HOOK}levels=["loud"]', "notify[0].levels"),
        (f'{HOOK}secret="T0PSECRET"\nsecret_file="/x"', "give only one of secret and secret_file"),
        (f'{HOOK}colour="red"', "notify[0].colour"),
        (f'{HOOK}kinds=["case.", "cases."]', 'notify[0].kinds = "cases.": use case., or another beginning'),
        (f'{HOOK}kinds=["node.lots"]', 'notify[0].kinds = "node.lots": use node.'),
        (f'{HOOK}kinds=["?"]', "use one that begins with agent., api., ask., breaker."),
        (f'{HOOK}groups=["gpus"]\n{GROUP}', 'notify[0].groups = "gpus": use gpu'),
        (f'{HOOK}groups=["gpu"]', 'notify[0].groups = "gpu": use a group of a [[groups]] table'),
    ],
)
def test_a_wrong_channel_is_refused_with_one_line_that_shows_no_secret(text: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings(text)
    assert complaint in str(refused.value)
    assert "T0PSECRET" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        'kinds=["case.", "node.fault", "api.", "api.CreateCluster", "breaker"]',
        f'groups=["gpu"]\n{GROUP}',
        'groups=["workers"]\n[capacity]\nprovider="command"\n[provider.command]\nlaunch=["/x"]\nterminate=["/x"]\nlist=["/x"]',
    ],
)
def test_a_channel_chooses_by_beginnings_of_kinds_and_by_groups_also_those_of_the_api(text: str) -> None:
    settings(HOOK + text)


def test_a_channel_is_sent_warnings_and_errors_of_everything_unless_it_says_otherwise() -> None:
    (one,) = make_channels(settings(HOOK))
    levels = frozenset({Level.WARNING, Level.ERROR})
    assert one.kind is ChannelKind.WEBHOOK
    assert one.rule == ChannelRule(name="ops", levels=levels, window_s=300.0, per_hour=30)


def test_what_is_printed_of_the_settings_has_no_url_and_no_secret() -> None:
    found = settings(f'{HOOK}secret="T0PSECRET"')
    assert "T0PSECRET" not in json.dumps(found.model_dump(mode="json")) + repr(found) + repr(make_channels(found))


def test_a_url_may_lie_in_a_file_of_its_own(tmp_path: Path) -> None:
    text = f'[[notify]]\nname="a"\nkind="webhook"\nurl_file="{tmp_path / "url"}"'
    with pytest.raises(Permanent, match=r"notify channel a: url_file .*; make it, readable by SlurmUser only"):
        make_channels(settings(text))
    (tmp_path / "url").write_text(f"{SECRET}\n")
    assert len(make_channels(settings(text))) == 1


def test_a_template_that_is_no_json_keeps_the_head_from_starting() -> None:
    (problem,) = wrong_names(settings(f'{HOOK}template="hello"'))
    assert str(problem).startswith("notify[0].template: the template of channel ops is neither json, slack, pagerduty")
