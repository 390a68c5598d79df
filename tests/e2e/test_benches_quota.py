"""The bench of quotas on real Slurm runs to its end, at its smallest size, on the cluster of their stories."""

from pathlib import Path

import pytest

from tests.bench.smallest import ON_A_BED_WITH_QUOTAS, runs_to_its_end
from tests.e2e.quota_bed import QuotaStory


@pytest.mark.long
@pytest.mark.parametrize("name", ON_A_BED_WITH_QUOTAS)
def test_a_bench_of_quotas_runs_to_its_end(name: str, quotas: QuotaStory, tmp_path: Path) -> None:
    runs_to_its_end(name, f"{ON_A_BED_WITH_QUOTAS[name]} --bed {quotas.bed.spec.dir}", tmp_path)
