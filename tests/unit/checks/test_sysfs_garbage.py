"""Whatever stands in the files of sysfs, a check gives a verdict and does not crash; words are no faults."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steward.checks import ACCELERATORS
from steward.checks.check import Check
from steward.checks.fabric import FABRIC
from steward.model.health import Outcome
from steward.model.probe import Raw
from tests.builders.looks import Looks
from tests.builders.sysfs import amd_gpu, efa, ethernet, infiniband, merged, neuron_device

TREE = merged(infiniband(), efa(), ethernet(), amd_gpu(0, pages="RP"), neuron_device(0))
PATHS = sorted(TREE)
CHECKS = [check for check in (*FABRIC, *ACCELERATORS) if check.source == "sysfs"]
ANY = st.one_of(st.none(), st.text(max_size=40), st.sampled_from(["-1", "0x", "4:", "1e9", "9" * 40, "ue: x", "\n\n"]))
WORDS = st.one_of(st.none(), st.text(alphabet="abcxyz \n\x00?-", max_size=20))


def trees(words: st.SearchStrategy[str | None]) -> st.SearchStrategy[Raw]:
    """The tree with other words in some of its files, or without some of them."""
    changes = st.dictionaries(st.sampled_from(PATHS), words, max_size=6)
    gone = st.sets(st.sampled_from(PATHS), max_size=6)
    return st.builds(lambda change, lost: Raw(files=_changed(change, lost)), changes, gone)


def _changed(change: dict[str, str | None], lost: set[str]) -> dict[str, str | None]:
    return {path: text for path, text in {**TREE, **change}.items() if path not in lost}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
@settings(max_examples=20)
@given(looks=st.lists(trees(ANY), min_size=1, max_size=4))
def test_no_tree_makes_a_check_crash(check: Check, looks: list[Raw]) -> None:
    assert Looks(check).over(0.0, 60.0, *looks).outcome in Outcome


COUNTED = [check for check in CHECKS if check.readings is not None]


@pytest.mark.parametrize("check", COUNTED, ids=lambda check: check.id)
@settings(max_examples=20)
@given(looks=st.lists(trees(WORDS), min_size=1, max_size=4))
def test_counters_that_only_turn_into_words_and_back_are_never_a_failure(check: Check, looks: list[Raw]) -> None:
    assert Looks(check).over(0.0, 60.0, *looks).outcome is not Outcome.FAILED
