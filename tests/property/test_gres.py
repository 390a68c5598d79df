"""GRES are read from each of Slurm's spellings, as slurm.conf has them and as Slurm 22.05 to 26.05 shows them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.assess.records import shapes
from steward.model.gres import Gres, gpus_of, parse_gres
from steward.model.job import parse_tres

names = st.sampled_from(("gpu", "mps", "shard", "nic", "bandwidth", "craynetwork"))
types = st.sampled_from(("", "a100", "h100_80gb", "1g.10gb", "a100_3g.20gb", "nvidia_a100-sxm4-40gb_1g.5gb+me"))
counts = st.integers(0, 5000) | st.integers(1, 2**40).map(lambda count: count * 1024)
entries = st.builds(Gres, names, types, counts)
places = st.sampled_from(("", "(S:0)", "(S:0-1)", "(S:0,2-3)", "(IDX:0,2-3)", "(IDX:N/A)", "(1/8,-/8)"))


def shown(count: int) -> str:
    """`_get_suffix` of Slurm's gres.c."""
    for power, unit in reversed(list(enumerate("KMGTP", start=1))):
        if count and count % 1024**power == 0:
            return f"{count // 1024**power}{unit}"
    return str(count)


@given(st.lists(st.tuples(entries, places, st.booleans(), st.booleans()), max_size=5))
def test_slurms_spellings_are_read_back(made: list[tuple[Gres, str, bool, bool]]) -> None:
    """`_build_node_gres_str`, and what 22.05 writes of what is in use."""
    words = []
    for of, place, is_used, is_free in made:
        parts = (of.name, of.type or "(null)" * is_used, "no_consume" * is_free, shown(of.amount))
        words.append(":".join(filter(None, parts)) + place)
    assert parse_gres(",".join(words)) == tuple(of for of, *_ in made)


@given(st.lists(entries, max_size=5))
def test_an_entry_is_written_as_slurm_reads_it(made: list[Gres]) -> None:
    assert parse_gres(",".join(map(str, made))) == tuple(made)


@given(st.lists(st.tuples(entries.filter(lambda of: of.amount < 1024), places), max_size=5))
def test_an_assessment_counts_the_same_gpus_on_a_node(made: list[tuple[Gres, str]]) -> None:
    text = ",".join(f"{of}{place}" for of, place in made)
    assert shapes([f"n1|8|{text}"]) == {"n1": (8, sum(gpu.amount for gpu in gpus_of(text)))}


@given(st.text(":,()=KMGT019gpuagres/ null", max_size=40))
def test_any_text_is_read(text: str) -> None:
    assert all(each.name and each.amount >= 0 for each in parse_gres(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu", [("gpu", "", 1)]),
        ("gpu:tesla", [("gpu", "tesla", 1)]),
        ("gpu:l4:4(S:0-1),shard:8", [("gpu", "l4", 4), ("shard", "", 8)]),
        ("gpu:no_consume:2", [("gpu", "", 2)]),
        ("bandwidth:lustre:no_consume:4G", [("bandwidth", "lustre", 4 * 1024**3)]),
        ("gpu:(null):2(IDX:0,3),mps:l4:100k", [("gpu", "", 2), ("mps", "l4", 102400)]),
        ("shard:a100:2(1/8,-/8)", [("shard", "a100", 2)]),
        *((text, []) for text in ("", "(null)", "N/A", "gpu:", "gpu::2", "gpu:2X", ":2")),
    ],
)
def test_a_text_has_these_entries(text: str, found: list[tuple[str, str, int]]) -> None:
    assert list(parse_gres(text)) == found


def test_what_a_job_has_is_written_otherwise() -> None:
    text = "cpu=48,mem=96G,node=1,gres/gpu=4,gres/gpu:a100_3g.20gb=4,gres/shard=8"
    found = {"cpu": 48, "mem": 98304, "node": 1, "gres/gpu": 4, "gres/gpu:a100_3g.20gb": 4, "gres/shard": 8}
    assert dict(parse_tres(text)) == found
