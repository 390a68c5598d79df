"""Messages as text: hostile texts are data."""

import json

import pytest

from steward.model.events import Level
from steward.views.notify import REST, body, fields, problem_of, title
from tests.builders.notify import a_message, an_event

HOSTILE = '"}, {"x": 1 \\ <!channel> <http://e|y> & $(reboot)\n\x1b[31m'


def test_a_title_tells_cluster_level_kind_node_and_how_often() -> None:
    assert title(a_message(), "big") == "[big] error: node.lost n2 (2 times since 2023-11-14 22:12:20 UTC)"
    assert title(a_message(count=1), "") == "[steward] error: node.lost n2"


def test_what_was_too_much_says_where_the_rest_is() -> None:
    assert "more events, see `steward events`" in title(a_message(key=REST, count=40), "big")


@pytest.mark.parametrize("template", ["json", "slack", "pagerduty", '{"a": "$title: $text", "b": ["$node", $count]}'])
def test_every_template_is_json_whatever_the_text(template: str) -> None:
    message = a_message(last=an_event("node.lost", text=HOSTILE, level=Level.ERROR))
    json.loads(body(template, message, "big", "key"))


@pytest.mark.parametrize("template", ["json", "slack", "pagerduty"])
def test_a_text_in_any_script_is_sent_as_it_was_written(template: str) -> None:
    told = json.loads(body(template, a_message(last=an_event(text="job 7 (größe-学習) runs again")), "big", "key"))
    assert "job 7 (größe-学習) runs again" in json.dumps(told, ensure_ascii=False)


def test_slack_reads_no_markup_from_an_event() -> None:
    told = json.loads(body("slack", a_message(last=an_event(text=HOSTILE)), "big"))["text"]
    assert "<" not in told
    assert "&lt;!channel&gt;" in told


def test_pagerduty_gets_one_alert_for_one_thing() -> None:
    first, later = (json.loads(body("pagerduty", a_message(number=i), "big", "key")) for i in (7, 90))
    assert first["dedup_key"] == later["dedup_key"] == "big|node.lost|n2|"
    assert (first["routing_key"], first["event_action"]) == ("key", "trigger")
    assert (first["payload"]["severity"], first["payload"]["source"]) == ("error", "n2")


def test_a_template_of_ones_own_puts_fields_where_they_are_named() -> None:
    told = json.loads(body('{"who": "$node", "n": $count, "key": "$secret"}', a_message(), "big", "s3"))
    assert told == {"who": "n2", "n": 2, "key": "s3"}


def test_the_json_template_has_every_field_but_the_secret() -> None:
    told = json.loads(body("json", a_message(), "big", "s3"))
    assert set(told) == set(fields(a_message(), "big")) - {"secret"}
    assert told["id"] == "big-7"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("teams", "is neither"),
        ('{"a": "$colour"}', "$colour is not a field"),
        ('{"a": $text}', "is neither"),
        ("{", "is neither"),
    ],
)
def test_a_wrong_template_says_what_is_wrong(template: str, problem: str) -> None:
    assert problem in problem_of(template)


def test_right_templates_have_no_problem() -> None:
    assert [problem_of(one) for one in ("json", "slack", "pagerduty", '{"t": "$text"}')] == ["", "", "", ""]
