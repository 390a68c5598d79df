"""Generated pages are what the code says now."""

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic.fields import FieldInfo

from steward.checks.catalogue import checks_page
from steward.model.settings import Settings
from steward.model.settings.doc import settings_page
from steward.model.settings.errors import fields_of, section_of

ROOT = Path(__file__).resolve().parents[2]
COUNTS = re.compile(
    r"(_samples|_min|_count|_spares|_factor|stalls|_per_hour|_per_day|_repairs|_at_once|_tries|_failures)$|^[cg]pus$"
    r"|^max_(resumes|launches|groups|instances)$"
)
UNITS = re.compile(r"_(s|h|days|kib|mb|percent|per_s)$")


def fields(model: type) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in fields_of(model).items():
        inner = section_of(field.annotation)
        if inner is None:
            yield f"{model.__name__}.{name}", field
        else:
            yield from fields(inner)


def test_the_settings_page_is_what_the_settings_say() -> None:
    assert (ROOT / "docs/config.md").read_text() == settings_page(checks_page()), "run: make docs"


def test_every_setting_says_what_it_means() -> None:
    assert [name for name, field in fields(Settings) if not field.description] == []


def test_every_number_has_a_unit_in_its_name_and_a_range() -> None:
    numbers = [(name, field) for name, field in fields(Settings) if field.annotation in (int, float)]
    assert [name for name, _ in numbers if not (UNITS.search(name) or COUNTS.search(name.split(".")[1]))] == []
    assert [name for name, field in numbers if not field.metadata] == []


def test_every_setting_of_a_form_has_an_example_of_it() -> None:
    forms = [
        (name, rule.pattern, field.examples or [""])
        for name, field in fields(Settings)
        for rule in field.metadata
        if getattr(rule, "pattern", None)
    ]
    assert forms
    assert [name for name, form, (example, *_) in forms if not example or not re.search(form, example)] == []


STOP = re.compile(r"`((?:head|workflows|policy|adapters|agent)/[a-z_/]+\.py)(?:: ([A-Za-z_.]+))?`")


def test_each_stop_of_the_walk_through_is_in_the_code() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    stops = STOP.findall(page.split("## Follow one fault")[1].split("\n## ")[0])
    assert len(stops) > 14
    for file, name in stops:
        text = (ROOT / "daemon/steward" / file).read_text()
        for part in filter(None, name.split(".")):
            assert re.search(rf"^ *(async )?(def|class) {part}\b|^{part}\b", text, re.MULTILINE), f"{file}: {name}"
