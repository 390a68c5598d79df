"""A page of records: the sweep and the narrow looks put together, each record as old as its own last read."""

from steward.workflows.book import Page

EMPTY: Page[str, str] = Page()
PAGE = EMPTY.with_sweep({"n1": "idle", "n2": "idle", "n3": "idle"}, 100.0)


def test_what_was_not_looked_at_is_as_old_as_the_sweep() -> None:
    page = PAGE.with_look({"n1"}, {"n1": "down"}, 110.0)
    assert page.records == {"n1": "down", "n2": "idle", "n3": "idle"}
    assert [page.times.at(name) for name in ("n1", "n2")] == [110.0, 100.0]


def test_a_record_that_was_asked_for_and_did_not_come_is_gone() -> None:
    page = PAGE.with_look({"n1", "n2"}, {"n2": "idle"}, 110.0)
    assert set(page.records) == {"n2", "n3"}
    assert page.times.at("n1") == 110.0


def test_a_look_without_news_leaves_the_same_records() -> None:
    page = PAGE.with_look({"n1"}, {"n1": "idle"}, 110.0)
    assert page.records is PAGE.records
    assert page.stale({"n1": 110.0, "n2": 110.0}) == {"n2"}


def test_a_sweep_without_news_leaves_the_same_records() -> None:
    assert PAGE.with_sweep({"n3": "idle", "n2": "idle", "n1": "idle"}, 160.0).records is PAGE.records


def test_a_record_that_did_not_change_is_the_same_object_after_a_sweep_with_news() -> None:
    new = PAGE.with_sweep({"n1": "".join(["id", "le"]), "n2": "down"}, 160.0)
    assert new.records["n1"] is PAGE.records["n1"]
    assert new.records["n2"] == "down"


def test_a_sweep_that_began_before_a_look_does_not_undo_it() -> None:
    page = PAGE.with_look({"n1", "n2"}, {"n1": "down"}, 110.0)
    page = page.with_sweep({"n1": "idle", "n2": "idle", "n3": "drained"}, 109.0)
    assert page.records == {"n1": "down", "n3": "drained"}
    assert [page.times.at(name) for name in ("n1", "n2", "n3")] == [110.0, 110.0, 109.0]


def test_a_look_that_began_before_the_last_sweep_is_not_used() -> None:
    page = PAGE.with_look({"n1"}, {"n1": "down"}, 99.0)
    assert page == PAGE


def test_a_sweep_after_a_look_is_the_last_word() -> None:
    page = PAGE.with_look({"n1"}, {"n1": "down"}, 110.0).with_sweep({"n1": "idle"}, 120.0)
    assert page.records == {"n1": "idle"}
    assert page.times.looked == {}


def test_records_that_nobody_asked_for_by_name_and_came_are_taken() -> None:
    page = PAGE.with_look((), {"n4": "idle"}, 110.0)
    assert page.records["n4"] == "idle"
    assert page.times.at("n4") == 110.0
