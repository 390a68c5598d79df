"""The tables `[resume]` and `[[resume.default]]`: what they become, and what is said of wrong values."""

import pytest

from steward.model.resume_mode import ResumeMode, SiteDefault
from steward.model.resume_policy import ResumePolicy
from steward.model.settings.errors import SettingsError
from steward.model.settings.parse import parse


def policy(text: str) -> ResumePolicy:
    return parse(text, source="steward.toml", env={}).desired().resume


def refusal(text: str) -> str:
    with pytest.raises(SettingsError) as refused:
        policy(text)
    return str(refused.value)


def test_defaults_of_the_site_are_in_their_order() -> None:
    text = '[[resume.default]]\npartition="gpu"\nqos="high"\nmode="any:2,max=5"\n[[resume.default]]\nmode="1"'
    assert policy(text).defaults == (
        SiteDefault(partition="gpu", qos="high", mode=ResumeMode.parse("any:2,max=5")),
        SiteDefault(mode=ResumeMode.parse("1")),
    )


def test_a_default_with_a_wrong_mode_is_refused_with_what_to_write() -> None:
    text = refusal('[[resume.default]]\naccount="physics"\nmode="any:0"')
    assert "resume.default[0].mode" in text
    assert "any:N with N from 1" in text


def test_a_default_without_a_mode_is_refused() -> None:
    assert "resume.default[0].mode is missing" in refusal('[[resume.default]]\npartition="gpu"')


def test_final_codes_are_exit_codes() -> None:
    assert policy("[resume]\nfinal_codes=[3, 120]").final_codes == (3, 120)
    assert "numbers from 1 to 255" in refusal("[resume]\nfinal_codes=[256]")
    assert "numbers from 1 to 255" in refusal("[resume]\nfinal_codes=[0]")


def test_back_off_times_may_be_zero_and_not_below() -> None:
    assert policy("[resume]\nbackoff_s=[0.0, 30.0]").backoff_s == (0.0, 30.0)
    assert "none below 0" in refusal("[resume]\nbackoff_s=[-1.0]")
    assert "at least one" in refusal("[resume]\nbackoff_s=[]")


def test_a_checkpoint_signal_is_a_signals_name() -> None:
    assert policy('[resume]\ncheckpoint_signal="USR1"').checkpoint_signal == "USR1"
    assert "resume.checkpoint_signal" in refusal('[resume]\ncheckpoint_signal="rm -rf"')
