"""Benches that need nothing of a cluster but that it is up run to their end, at their smallest size, on that of the
stories."""

from pathlib import Path

import pytest

from tests.bench.smallest import ON_A_BED, runs_to_its_end
from tests.e2e.story import Story


@pytest.mark.long
@pytest.mark.parametrize("name", ON_A_BED)
def test_a_bench_on_a_cluster_that_is_up_runs_to_its_end(name: str, story: Story, tmp_path: Path) -> None:
    runs_to_its_end(name, f"{ON_A_BED[name]} --bed {story.bed.spec.dir}", tmp_path)
