"""Prometheus metrics of the lead of two heads: each head tells what it knows itself."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from steward.model.leadership import Heads


def lead_text(heads: Heads) -> bytes:
    """Return the metrics in Prometheus's text format."""
    registry = CollectorRegistry()
    registry.register(_Lead(heads))
    return generate_latest(registry)


class _Lead(Collector):
    def __init__(self, heads: Heads) -> None:
        self._heads = heads

    def collect(self) -> Iterator[GaugeMetricFamily]:
        heads = self._heads
        yield _gauge("leads", "1 if this head leads and may act, else 0.", float(heads.is_mine))
        yield _gauge("epoch", "The epoch of the lead; larger each time that a head takes it.", float(heads.epoch))
        lease = "1 if this head could read or renew the lease at its last try, else 0."
        yield _gauge("lease_reachable", lease, float(not heads.trouble))
        if heads.is_mine:
            could = "Other heads that could take over now."
            yield _gauge("successors", could, float(len(heads.successors)))
        elif heads.picture_s is not None:
            yield _gauge("picture_age_seconds", "How old this follower's picture of Slurm is.", heads.picture_s)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"steward_head_{name}", text, value=value)
