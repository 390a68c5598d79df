"""The harvest bench counts what it says."""

from tests.bench.harvest import replay


def test_a_quiet_hour_is_nearly_all_harvested() -> None:
    found = replay(seed=5, hours=0.5)
    assert 0.5 < found.share <= 1.0
    assert found.changes >= 2
