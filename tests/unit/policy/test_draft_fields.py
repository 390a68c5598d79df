"""The draft is driven by the fields of memory."""

from dataclasses import fields

from steward.model.memory import Memory
from steward.policy.draft import Draft
from tests.builders.picture import a_cluster


def test_each_field_of_memory_is_declared_in_the_draft_under_its_name() -> None:
    declared = Draft.__annotations__.keys() - {"who"}
    assert declared == {field.name for field in fields(Memory)}


def test_a_draft_that_nothing_changed_remembers_the_very_rows_that_it_began_with() -> None:
    picture = a_cluster()
    memory = Draft(picture.seen, picture.want, picture.memory, picture.now).memory()
    assert all(getattr(memory, each.name) is getattr(picture.memory, each.name) for each in fields(Memory))
