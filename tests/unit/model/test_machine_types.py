"""The machine types that ship with Steward."""

from botocore.loaders import Loader

from steward.model.machine_types import BUILT_IN
from steward.model.settings import parse


def test_every_type_of_the_published_api_is_there_and_no_other() -> None:
    shapes = Loader().load_service_model("sagemaker", "service-2")["shapes"]
    assert set(BUILT_IN) == set(shapes["ClusterInstanceType"]["enum"])


def test_a_types_figures_are_as_published() -> None:
    big, regular, small = BUILT_IN["ml.p5.48xlarge"], BUILT_IN["ml.m7i.48xlarge"], BUILT_IN["ml.c6g.medium"]
    assert (big.cpus, big.memory_mb, big.gpus) == (192, 2048 * 1024, 8)
    assert (regular.cpus, regular.memory_mb, regular.gpus) == (192, 768 * 1024, 0)
    assert (small.cpus, small.memory_mb) == (1, 2 * 1024)


def test_a_sites_own_type_stands_beside_them_and_one_of_the_same_name_replaces_it() -> None:
    text = '[[machine_types]]\nname = "ml.t3.large"\ncpus = 7\n[[machine_types]]\nname = "rack-1"\ngpus = 4\n'
    types = parse(text, source="steward.toml", env={}).desired().capacity.types
    assert (types["ml.t3.large"].cpus, types["rack-1"].gpus, types["ml.t3.medium"].cpus) == (7, 4, 2)
