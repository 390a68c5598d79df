"""Prometheus: what the cluster looks like now. Worked out when it is asked for, not in every cycle."""

from collections import Counter as Tally
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from steward.model.node import Node
from steward.workflows.snapshot import Snapshot


class SiteMetrics(Collector):
    """Fed by Metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._latest: Snapshot | None = None
        registry.register(self)

    def watch(self, snapshot: Snapshot) -> None:
        """A cycle ended."""
        self._latest = snapshot

    def collect(self) -> Iterator[GaugeMetricFamily]:
        latest = self._latest
        nodes = GaugeMetricFamily("steward_nodes", "Nodes by state.", labels=["state"])
        states = Tally(node_state(node) for node in latest.seen.nodes.values()) if latest else Tally[str]()
        for state, count in states.items():
            nodes.add_metric([state], count)
        yield nodes
        cases = sum(case.is_open for case in latest.memory.cases.values()) if latest else 0
        yield GaugeMetricFamily("steward_open_cases", "Repairs that are not closed.", value=cases)
        agents = sum(view.connected for view in latest.seen.agents.values()) if latest else 0
        yield GaugeMetricFamily("steward_agents_connected", "Agents that are connected now.", value=agents)
        paused = latest is not None and latest.memory.paused
        yield GaugeMetricFamily("steward_paused", "1 while a person has paused all actions.", value=paused)


def node_state(node: Node) -> str:
    """One word for people: Slurm's base state, or how it is out of service."""
    if node.is_down:
        return "down"
    if node.is_drain:
        return "draining" if node.is_busy else "drained"
    return node.base.value.lower()
