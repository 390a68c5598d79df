"""A site upgrades its head in the middle of its work: what the earlier one wrote is gone on with."""

import sqlite3
import tomllib
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from steward.adapters.store.engine import open_engine, sqlite_url
from steward.adapters.store.sql import SqlStore
from steward.model.case import Step
from steward.model.group import GroupStatus
from steward.model.ids import JobId, NodeName
from steward.model.memory import Memory
from steward.model.settings import parse
from tests.chaos.cell import run_cell
from tests.chaos.earlier import CELLS, FOLDER, file_of, recordings, upgraded_from
from tests.chaos.matrix import flow_of

STATES = [(recording, *cell) for recording in recordings() for cell in CELLS]


@pytest.mark.parametrize(("recording", "flow", "step"), STATES, ids=[", ".join(state) for state in STATES])
def test_a_head_of_today_goes_on_with_what_an_earlier_one_began(recording: str, flow: str, step: str) -> None:
    result = run_cell(flow_of(flow), step, upgraded_from(file_of(recording, flow, step)))
    assert result.broken == ()
    assert result.felt


def _load(recording: str, flow: str, step: str, folder: Path) -> Memory:
    with closing(sqlite3.connect(folder / "steward.db")) as made:
        made.executescript(file_of(recording, flow, step).read_text(encoding="utf-8"))
    engine = open_engine(sqlite_url(folder / "steward.db"))
    try:
        return SqlStore(engine, now=lambda: 0.0).load()
    finally:
        engine.dispose()


@pytest.mark.parametrize("recording", recordings())
def test_an_open_case_a_requeued_job_and_a_group_that_is_updated_are_read_whole(recording: str, tmp_path: Path) -> None:
    def loaded(flow: str, step: str) -> Memory:
        folder = tmp_path / flow
        folder.mkdir()
        return _load(recording, flow, step, folder)

    (case,) = loaded("case", "provision").cases.values()
    assert (case.step, case.marking.shown is None) == (Step.PROVISION, False)
    jobs = loaded("requeue", "runs again").jobs
    assert (jobs[JobId(1)].resumes, jobs[JobId(1)].mode.on, jobs[JobId(1)].excluded) == (
        1,
        True,
        frozenset({NodeName("n1")}),
    )
    assert jobs[JobId(1)].pending_from is not None
    groups = loaded("gate change", "closed").groups
    assert (groups["workers"].status, groups["workers"].goal.target) == (GroupStatus.UPDATING, 5)
    assert loaded("rolling update", "provision").groups["workers"].status is GroupStatus.SYSTEM_UPDATING


@pytest.mark.parametrize(("recording", "flow", "step"), STATES, ids=[", ".join(state) for state in STATES])
def test_every_table_that_an_earlier_head_filled_is_one_of_memory(recording: str, flow: str, step: str) -> None:
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(file_of(recording, flow, step).read_text(encoding="utf-8"))
        filled = {name for (name,) in made.execute("SELECT DISTINCT section FROM memory")}
    assert filled <= {field.name for field in fields(Memory)}


@pytest.mark.parametrize("recording", recordings())
def test_a_file_of_every_setting_that_an_earlier_head_knew_means_the_same(recording: str) -> None:
    """Those of checks, which have other tables now, are compared by tests/property/test_former_checks.py."""
    text = (FOLDER / recording / "steward.toml").read_text(encoding="utf-8")
    settings = parse(text, source="steward.toml", env={}).model_dump(mode="json")

    def differ(was: Any, now: Any, at: str) -> list[str]:
        if isinstance(was, dict):
            return [text for key in was for text in differ(was[key], now.get(key), f"{at}.{key}")]
        if isinstance(was, list) and was and isinstance(was[0], dict):
            return [text for one, other in zip(was, now, strict=True) for text in differ(one, other, at)]
        return [] if was == now else [f"{at}: {was!r}, now {now!r}"]

    was = {key: table for key, table in tomllib.loads(text).items() if key != "checks"}
    assert differ(was, settings, "") == []
