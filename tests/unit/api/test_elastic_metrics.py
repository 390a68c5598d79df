"""Elastic runs in Prometheus: each change once."""

from prometheus_client import CollectorRegistry

from steward.api.metrics import ElasticMetrics
from tests.fakes.elastic_world import ElasticWorld


def test_each_change_counts_once_and_its_pause_when_it_is_known() -> None:
    registry, world = CollectorRegistry(), ElasticWorld()
    metrics = ElasticMetrics(registry)
    for _ in range(40):
        before = world.picture.memory
        world.step()
        metrics.watch(before, world.picture.memory)
        metrics.watch(world.picture.memory, world.picture.memory)
    value = registry.get_sample_value
    assert value("steward_elastic_runs") == 1
    assert value("steward_elastic_borrowed_nodes") == 3
    assert value("steward_elastic_changes_total", {"cause": "grow"}) == 1
    assert value("steward_elastic_pause_seconds_count", {"cause": "grow"}) == 1
    assert value("steward_elastic_pause_seconds_sum", {"cause": "grow"}) is not None
