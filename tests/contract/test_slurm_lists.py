"""Lists of nodes are read as the real Slurm reads them, also those that its users type into their jobs."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.adapters.slurm.cli import CommandLineSlurm
from steward.model.ids import JobId
from steward.model.node_names import unfold
from tests.contract.cluster import Cluster
from tests.contract.conftest import Clusters, wrappers

EXAMPLES = 60
prefixes = st.sampled_from(("n", "b1", "gpu0", "ip-10-0-", "rack1-n", "x.y0", "7"))
ends = st.integers(0, 120).map(str) | st.integers(0, 120).map(lambda n: f"{n:03}")
ranges = st.tuples(ends, st.integers(0, 9)).map(lambda pair: f"{pair[0]}-{int(pair[0]) + pair[1]}") | ends
brackets = st.lists(ranges, min_size=1, max_size=3).map(lambda many: f"[{','.join(many)}]")
terms = st.builds(lambda *parts: "".join(parts), prefixes, st.sampled_from(("", "0", "19")), brackets | st.just("4"))
gaps = st.sampled_from((",", ",,", " ", ", "))
lists = st.lists(st.tuples(terms, gaps), min_size=1, max_size=4).map(lambda many: "".join(map("".join, many)))


@pytest.fixture
def cluster(slurm_root: Path, clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    if slurm_root != Path("/"):
        monkeypatch.setenv("PATH", f"{wrappers(tmp_path, slurm_root)}:/usr/sbin:/usr/bin:/sbin:/bin")
    found = clusters.of(slurm_root)
    yield found
    found.run("scancel", "--user=root")


def test_a_list_has_the_names_that_scontrol_shows(cluster: Cluster) -> None:
    @settings(max_examples=EXAMPLES)
    @given(lists)
    def agree(text: str) -> None:
        shown = cluster.run("scontrol", "show", "hostnames", text).split()
        assert list(unfold(text)) == list(dict.fromkeys(shown))

    agree()


@pytest.mark.parametrize("text", ["n1,", "n1,,n2", "n1 n2", ",", " "])
def test_what_slurm_takes_into_a_job_hides_no_job_from_us(cluster: Cluster, text: str) -> None:
    """A list that a script built in a loop, and a job whose name is what Slurm prints for none."""
    port = CommandLineSlurm(conf=cluster.env["SLURM_CONF"])
    odd, named, other = (JobId(cluster.sbatch("--hold", *more)) for more in ((), ("--job-name=(null)",), ()))
    cluster.run("scontrol", "update", f"jobid={odd}", f"excnodelist={text}")

    names = set(re.findall(r"n[1-3]", text))
    for _ in range(2):
        found = port.jobs()
        assert {odd, named, other} <= found.keys()
        assert found[odd].excluded == names
        assert port.jobs([odd])[odd].excluded == names
        assert port.jobs([named])[named].name == "(null)"
