"""Partitions as `scontrol show partitions` prints them, the same text in every Slurm: which QOS and accounts they take,
and their nodes."""

import pytest

from steward.adapters.slurm.partitions import Reader, partitions
from steward.model.partition import Admission, PartitionState

LINE = (
    "PartitionName=main AllowGroups=ALL {} AllocNodes=ALL Default=YES QoS=N/A DefaultTime=NONE MaxTime=UNLIMITED "
    "Nodes=n[1-2] State=UP TotalCPUs=8 TotalNodes=2"
)
ANY = Admission()


@pytest.mark.parametrize(
    ("words", "qos", "accounts"),
    [
        ("AllowAccounts=ALL AllowQos=ALL", ANY, ANY),
        ("AllowAccounts=ALL AllowQos=normal,High", Admission(allow=frozenset({"normal", "high"})), ANY),
        ("DenyAccounts=old AllowQos=ALL", ANY, Admission(deny=frozenset({"old"}))),
        (
            "AllowAccounts=red,blue DenyQos=low",
            Admission(deny=frozenset({"low"})),
            Admission(allow=frozenset({"red", "blue"})),
        ),
        ("AllowAccounts=ALL", None, ANY),
        ("", None, None),
    ],
)
def test_admission(words: str, qos: Admission | None, accounts: Admission | None) -> None:
    found = partitions(LINE.format(words), 0.0)["main"]
    assert (found.qos, found.accounts) == (qos, accounts)


def test_an_allowed_list_is_all_that_counts() -> None:
    assert ANY.refuses("a") is False
    assert Admission(allow=frozenset({"b"}), deny=frozenset({"b"})).refuses("B") is False
    assert Admission(allow=frozenset({"b"})).refuses("a") is True
    assert Admission(deny=frozenset({"a"})).refuses("A") is True


def test_a_partitions_own_qos() -> None:
    assert partitions(LINE.format(""), 0.0)["main"].own_qos == ""
    assert partitions(LINE.format("").replace("QoS=N/A", "QoS=part"), 0.0)["main"].own_qos == "part"


def test_a_list_of_nodes_is_expanded_once_for_as_long_as_the_answers_have_it() -> None:
    reader = Reader()
    before = reader.read(LINE.format(""), 1.0)["main"]
    again = reader.read(LINE.format("").replace("State=UP", "State=DOWN"), 2.0)["main"]
    assert again.nodes is before.nodes
    assert (again.state, again.loaded) == (PartitionState.DOWN, 2.0)
    grown = reader.read(LINE.format("").replace("n[1-2]", "n[1-3]"), 2.0)["main"]
    assert grown.nodes == {"n1", "n2", "n3"}
    back = reader.read(LINE.format(""), 2.0)["main"]
    assert back.nodes == before.nodes
    assert back.nodes is not before.nodes
