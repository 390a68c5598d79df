"""Every bench is run by a test at its smallest size: those without a cluster here, the others in tests/e2e."""

from pathlib import Path

import pytest

from tests.bench import smallest
from tests.bench.smallest import ON_A_BED, ON_A_BED_WITH_QUOTAS, WITH_ITS_OWN, WITHOUT_SLURM, runs_to_its_end

BENCHES = Path(smallest.__file__).parent


@pytest.mark.long
@pytest.mark.parametrize("name", WITHOUT_SLURM)
def test_a_bench_without_slurm_runs_to_its_end(name: str, tmp_path: Path) -> None:
    runs_to_its_end(name, WITHOUT_SLURM[name], tmp_path)


def test_every_bench_has_a_smallest_size() -> None:
    programs = {path.stem for path in BENCHES.glob("*.py") if "argparse.ArgumentParser(" in path.read_text()}
    assert programs == {*WITHOUT_SLURM, *WITH_ITS_OWN, *ON_A_BED, *ON_A_BED_WITH_QUOTAS}
