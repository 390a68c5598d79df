"""Benches with a real cluster of their own run to their end at their smallest size."""

from pathlib import Path

import pytest

from tests.bench.smallest import WITH_ITS_OWN, runs_to_its_end


@pytest.mark.long
@pytest.mark.parametrize("name", WITH_ITS_OWN)
def test_a_bench_with_its_own_cluster_runs_to_its_end(name: str, tmp_path: Path) -> None:
    runs_to_its_end(name, WITH_ITS_OWN[name], tmp_path)
