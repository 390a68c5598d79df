"""The bench of jobs that hang, at its smallest: each kind of fault is told with its node, and no healthy phase is."""

import pytest

from tests.bench import hangs


@pytest.mark.parametrize("kind", hangs.FAULTS)
def test_each_kind_of_fault_is_told_in_time_and_the_right_node_is_named(kind: str) -> None:
    told, node = hangs.faulty(kind, 0)
    assert told.after_s is not None
    assert told.after_s <= hangs.FAULTS[kind].within_s
    assert hangs.names(told) == ({node} if node else frozenset())


@pytest.mark.parametrize("phase", hangs.PHASES)
def test_no_healthy_phase_is_told(phase: str) -> None:
    assert hangs.healthy(phase, 0).texts == ()


@pytest.mark.parametrize("pause", hangs.PAUSES)
def test_in_a_long_pause_a_job_is_told_and_ended_only_where_it_wrote_hang(pause: str) -> None:
    told, asked = (hangs.paused(pause, 0, mode) for mode in ("1", "1,hang=1"))
    assert (len(told.texts), told.is_ended, asked.is_ended) == (1, False, True)
