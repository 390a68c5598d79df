"""What the agent does with what the head says."""

from unittest.mock import Mock

import pytest

from steward.agent.agent import Agent

PARTS = (
    *("node", "link", "desk", "past", "senses", "letting_go", "jobs", "sight"),
    *("stacks", "setups", "deep", "mending", "peers", "elastic", "notifier"),
)


def test_what_a_head_of_another_version_says_is_left_out_and_the_rest_counts(caplog: pytest.LogCaptureFixture) -> None:
    parts = {name: Mock() for name in PARTS}
    agent = Agent(**parts)
    for _ in range(3):
        agent.hear({"t": "of tomorrow", "what": [1, 2]})
    agent.hear({"t": "check_now", "id": "7", "budget_s": 2.0})
    parts["senses"].check_now.assert_called_once_with("7", 2.0)
    assert sum("of tomorrow" in record.getMessage() for record in caplog.records) == 1
