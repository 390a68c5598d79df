"""What every SlurmPort promises of features of nodes, on the fake and on real Slurm."""

from collections.abc import Iterator

import pytest

from steward.model.ids import NodeName
from steward.ports import Permanent
from tests.contract.slurm_worlds import SlurmWorld

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
PREFIX = "HealthCheck:"


Features = dict[NodeName, tuple[frozenset[str], frozenset[str]]]
"""(available, active) of each node."""


@pytest.fixture(autouse=True)
def in_conf(slurm_world: SlurmWorld) -> Iterator[Features]:
    """What slurm.conf gives each node (on real Slurm n1 has some); so it is again afterwards."""
    before = features(slurm_world)
    yield before
    slurm_world.reconfigure()
    slurm_world.wait("all is as in slurm.conf", lambda: features(slurm_world) == before)


def features(world: SlurmWorld) -> Features:
    return {name: (node.features, node.active_features) for name, node in world.port.nodes().items()}


def with_word(word: str, before: tuple[frozenset[str], frozenset[str]]) -> tuple[frozenset[str], frozenset[str]]:
    available, active = before
    return available | {PREFIX + word}, active | {PREFIX + word}


def test_nodes_bear_the_one_feature_that_was_set_beside_those_of_slurm_conf(
    slurm_world: SlurmWorld, in_conf: Features
) -> None:
    slurm_world.port.set_feature([N1, N2], PREFIX, "Passed")
    now = features(slurm_world)
    assert now[N1] == with_word("Passed", in_conf[N1])
    assert now[N2] == with_word("Passed", in_conf[N2])
    assert now[N3] == in_conf[N3]


def test_another_word_takes_the_place_of_the_one_before(slurm_world: SlurmWorld, in_conf: Features) -> None:
    slurm_world.port.set_feature([N1], PREFIX, "Passed")
    slurm_world.port.set_feature([N1], PREFIX, "Failed")
    assert features(slurm_world)[N1] == with_word("Failed", in_conf[N1])


def test_an_empty_word_takes_the_feature_away_and_leaves_all_others(slurm_world: SlurmWorld, in_conf: Features) -> None:
    slurm_world.port.set_feature([N1, N2], PREFIX, "Passed")
    slurm_world.port.set_feature([N1, N2, N3], PREFIX, "")
    assert features(slurm_world) == in_conf


def test_what_an_admin_gave_a_node_stays_available_and_active_as_it_was(slurm_world: SlurmWorld) -> None:
    slurm_world.add_feature("n1", available="rack1,snc4,flat", active="rack1,flat")
    slurm_world.add_feature("n2", available="rack2", active="rack2")
    slurm_world.port.set_feature([N1, N2, N3], PREFIX, "Passed")
    slurm_world.port.set_feature([N1], PREFIX, "Failed")
    given = frozenset({"rack1", "snc4", "flat"}), frozenset({"rack1", "flat"})
    assert features(slurm_world)[N1] == with_word("Failed", given)
    assert features(slurm_world)[N2] == with_word("Passed", (frozenset({"rack2"}), frozenset({"rack2"})))


def test_a_node_that_is_gone_does_not_keep_the_others_from_theirs(slurm_world: SlurmWorld, in_conf: Features) -> None:
    slurm_world.port.set_feature([N1, NodeName("gone")], PREFIX, "Passed")
    assert features(slurm_world)[N1] == with_word("Passed", in_conf[N1])


def test_slurm_forgets_what_was_set_when_it_reads_its_configuration_again(
    slurm_world: SlurmWorld, in_conf: Features
) -> None:
    slurm_world.port.set_feature([N1], PREFIX, "Passed")
    slurm_world.reconfigure()
    slurm_world.wait("n1 has none of ours", lambda: features(slurm_world)[N1] == in_conf[N1])


@pytest.mark.parametrize("word", ["a,b", "a b", "", "x" * 80, "a\nstate=down"])
def test_text_that_is_no_feature_is_refused(slurm_world: SlurmWorld, word: str) -> None:
    with pytest.raises(Permanent, match="not a feature"):
        slurm_world.port.set_feature([N1], "" if not word else PREFIX, word)
