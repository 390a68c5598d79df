"""No message about a wrong file quotes a secret, also where it stands at the wrong place."""

import pytest

from steward.model.settings import SettingsError, parse

CANARY = "CANARY-do-not-show-2"
HOOK = '[[notify]]\nname = "ops"\nkind = "webhook"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'{HOOK}url = ["{CANARY}"]', "notify[0].url"),
        (f'{HOOK}secret = {{ key = "{CANARY}" }}', "notify[0].secret"),
        (f'{HOOK}ur1 = "{CANARY}"', "did you mean url?"),
        (f'{HOOK}url = "{CANARY}"', "notify[0].url"),
        (f'notify = "{CANARY}"', "notify"),
        (f'notify = ["{CANARY}"]', "notify[0]"),
        (f'[head]\ndatabase = ["{CANARY}"]', "head.database"),
        (f'[head]\ndata_base = "{CANARY}"', "did you mean database?"),
        (f'head = "{CANARY}"', "head"),
    ],
)
def test_a_secret_at_the_wrong_place_is_not_quoted(text: str, told: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse(text, source="f.toml", env={})
    assert told in str(refused.value)
    assert CANARY not in str(refused.value)


def test_a_wrong_value_that_is_no_secret_is_shown() -> None:
    with pytest.raises(SettingsError, match="heartbeat_s = -1"):
        parse("[head]\nheartbeat_s = -1", source="f.toml", env={})
