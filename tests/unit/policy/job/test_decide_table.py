"""docs/resume.md tells the rules and options that are in the code."""

import re
from pathlib import Path

from steward.model.resume_mode import USAGE
from steward.policy.job.decide import table

PAGE = Path(__file__).parents[4] / "docs" / "resume.md"


def test_the_page_has_the_rules_in_their_order() -> None:
    assert table() in PAGE.read_text(), "put in: python -m steward.policy.job.decide"


def test_the_page_has_every_option() -> None:
    rows = set(re.findall(r"^\| `(\w+)=", PAGE.read_text(), re.MULTILINE))
    assert rows == set(re.findall(r",(\w+)=", USAGE))
