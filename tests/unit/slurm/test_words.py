"""No text becomes another argument, another key or another node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steward.adapters.slurm import versions
from steward.adapters.slurm.words import expand, node_list, reason, words_of
from steward.model.ids import NodeName
from steward.model.mark import Mark, parse_mark
from steward.ports import Permanent, Retryable


def test_node_names_are_folded_and_come_back() -> None:
    names = [NodeName(name) for name in ("n1", "n2", "n3", "m7", "gpu-01.rack")]

    assert node_list(names) == "gpu-01.rack,m7,n[1-3]"
    assert expand(node_list(names)) == set(names)


@pytest.mark.parametrize("text", ["", "(null)", "None"])
def test_no_list_is_no_node(text: str) -> None:
    assert expand(text) == frozenset()
    assert node_list([]) == ""


@pytest.mark.parametrize("name", ["", "n1 state=down", "n1,n2", "n[1-3]", "@group", "-n1", "n1\n", "n=1", "*", "ALL!"])
def test_what_is_no_node_name_is_refused(name: str) -> None:
    with pytest.raises(Permanent, match="not a node name"):
        node_list([NodeName(name)])


@pytest.mark.parametrize("text", ["n[1-", "n[3-1]", "@all", "n[1-3]]"])
def test_a_list_that_cannot_be_read_is_no_empty_list(text: str) -> None:
    with pytest.raises(Retryable):
        expand(text)


@given(st.text())
def test_a_reason_is_one_short_printable_line_without_quotes(text: str) -> None:
    made = reason(text)

    assert len(made) <= 200
    assert all(" " <= char <= "~" for char in made)
    assert not set(made) & set("'\"`\\\n")


def test_our_mark_survives_as_a_reason() -> None:
    mark = Mark(check="gpu.xid", action="drain", id="c-17")

    assert parse_mark(reason(str(mark))) == mark


@pytest.mark.parametrize(
    ("text", "release"), [("slurm-wlm 22.05.8\n", (22, 5)), ("slurm 24.11.5", (24, 11)), ("slurm 26.05.0-rc1", (26, 5))]
)
def test_a_version_is_read(text: str, release: tuple[int, int]) -> None:
    assert versions.parse(text).release == release


@pytest.mark.parametrize("text", ["slurm 21.08.8", "", "command not found"])
def test_a_slurm_that_is_too_old_or_none_is_refused(text: str) -> None:
    with pytest.raises(Permanent):
        versions.parse(text)


def test_a_setting_that_is_not_set_has_no_words() -> None:
    assert words_of("(null)") == frozenset()
    assert words_of("associations,Limits,qos") == {"associations", "limits", "qos"}
