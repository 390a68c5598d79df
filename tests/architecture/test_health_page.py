"""docs/health.md says what the code says."""

import re
from pathlib import Path

import click
import pytest

from steward.api.metrics import Metrics
from steward.cli import main
from steward.model.agent_tables import HealthPolicy
from steward.model.repair_policy import LadderPolicy, RepairPolicy
from steward.model.settings import parse
from steward.policy.facts import incidents
from steward.policy.guards import breaker, canary
from steward.views.node_verdict import Word
from steward.views.notify import FIELDS, problem_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "health.md").read_text()


def test_its_settings_are_right() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    group = '[[groups]]\nname = "gpu"\nnodes = "gpu[1-8]"\nprovider = "static"\n'
    assert [one.name for one in parse(block + group, source="health.md", env={}).notify] == [
        "ops",
        "pager",
        "mail",
        "own",
    ]


def test_its_template_is_right_and_it_names_every_field() -> None:
    (template,) = re.findall(r'`(\{"msg".*?\})`', PAGE)
    assert problem_of(template) == ""
    assert [name for name in FIELDS if f"`${name}`" not in PAGE] == []


@pytest.mark.parametrize("word", Word, ids=lambda word: word.value)
def test_it_explains_every_verdict(word: Word) -> None:
    assert re.search(rf"^\| .*\b{word.value}\b.* \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize(
    "command", sorted(set(re.findall(r"(?:`|^    |  )steward ((?:[a-z][a-z-]+ ?)+)", PAGE, re.MULTILINE)))
)
def test_its_commands_are_there(command: str) -> None:
    found: click.Command | None = main
    path: list[str] = []
    for word in command.split():
        if isinstance(found, click.Group) and (inner := found.get_command(click.Context(found), word)):
            found, path = inner, [*path, word]
    assert path
    assert not isinstance(found, click.Group), f"steward {command}: which of its commands?"


def test_its_metrics_are_there() -> None:
    text = Metrics().text().decode()
    named = re.findall(r"`(steward_[a-z_]+)", PAGE)
    assert len(named) == 7
    assert [name for name in named if f"# TYPE {name} " not in text] == []


def test_its_numbers_are_the_defaults() -> None:
    ladder, repair, health = LadderPolicy(), RepairPolicy(), HealthPolicy()
    for number, sentence in (
        (ladder.restarts_per_hour, "{} in an hour"),
        (ladder.resets_per_day, "{} in a day"),
        (ladder.reboots_per_day, "reboot | {} in a day"),
        (ladder.replacements_per_day, "{} in a day for one node"),
        (repair.node_repairs, "after {} repairs in 7 days"),
        (repair.concurrent_fraction * 100, "{:g} % of a group"),
        (repair.concurrent_all_count, "{} in all"),
        (repair.replacements_per_hour, "{} begun in an hour"),
        (incidents.SHARE * 100, "{:g} % of the nodes"),
        (repair.breaker_fraction * 100, "{:g} % out by our own action"),
        (breaker.CHECK_SHARE * 100, "{:g} % within 10 min"),
        (repair.breaker_patience_s / 60, "one repair through after {:g} min"),
        (health.canary_node_count, "{} nodes for 4 h"),
        (canary.TRIAL_S / 3600, "nodes for {:g} h"),
    ):
        assert sentence.format(number) in PAGE
