"""The bench of one hostile user fails where anybody else is harmed, or more is held than docs/security.md says."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bench.hostile import MOST_AGENT_MIB, MOST_HEAD_MIB, MOST_STORE_MIB, Found, Held, is_unharmed, summary

PAGE = Path(__file__).resolve().parents[3] / "docs" / "security.md"
HELD = Held(head_mib=100.0, agent_mib=30.0, store_mib=10.0, logs_mib=5.0, rows={"events": 7})


def found(*held: Held, **fields: Any) -> Found:
    good: dict[str, Any] = {"quiet_s": [4.0], "beside_s": [6.0], "jobs": {"1": "RUNNING 0"}, "held": list(held)}
    return Found(**{**good, **fields})


def test_a_run_in_which_nobody_was_harmed_and_little_was_held() -> None:
    assert is_unharmed(found(HELD, HELD))
    assert summary(found(HELD)).endswith("; unharmed")


@pytest.mark.parametrize(
    "more",
    [{"head_mib": MOST_HEAD_MIB + 1}, {"agent_mib": MOST_AGENT_MIB + 1}, {"store_mib": MOST_STORE_MIB + 1}],
    ids=str,
)
def test_more_memory_or_a_larger_store_than_is_promised_at_any_moment_fails_the_bench(more: dict[str, Any]) -> None:
    assert not is_unharmed(found(HELD, replace(HELD, **more), HELD))


@pytest.mark.parametrize(
    "harm",
    [
        {"taken_out": ["n7"]},
        {"missed": 1},
        {"silent": ["n1"]},
        {"errors": ["a look failed"]},
        {"jobs": {"1": "RUNNING 1"}},
        {"beside_s": [8.1]},
        {"beside_s": []},
        {"held": []},
    ],
    ids=str,
)
def test_any_harm_fails_the_bench_and_so_does_what_was_not_measured(harm: dict[str, Any]) -> None:
    assert not is_unharmed(found(**{"held": [HELD], **harm}))


def test_what_plain_slurm_does_beside_the_user_is_told_and_excuses_nothing() -> None:
    slow = found(HELD, beside_s=[20.0], quiet_step_s=[0.1], beside_step_s=[5.0])
    assert "a step of plain Slurm: 50.00 times" in summary(slow)
    assert not is_unharmed(slow)


def test_the_page_promises_what_the_bench_holds() -> None:
    text = " ".join(PAGE.read_text().split())
    head, agent, store = (f"{most:.0f} MiB" for most in (MOST_HEAD_MIB, MOST_AGENT_MIB, MOST_STORE_MIB))
    assert f"the head {head}, an agent {agent}, the store {store}" in text
