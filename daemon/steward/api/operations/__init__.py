"""The handlers of the AWS endpoint, by operation."""

from collections.abc import Mapping
from types import MappingProxyType

from steward.api.operations.batches import AddBatch, Batches, HealthFilter
from steward.api.operations.cluster import Clusters, Software, Tags
from steward.api.operations.events import Events, Scalings
from steward.api.operations.nodes import Nodes
from steward.api.operations.quotas import Quotas, Schedulers
from steward.api.operations.sight import Handler
from steward.api.source import Source


def handlers(source: Source) -> Mapping[str, Handler]:
    """Return the handler of each operation that is served."""
    clusters, nodes, batches, events = Clusters(source), Nodes(source), Batches(source), Events(source)
    scalings, tags = Scalings(source), Tags(source)
    quotas, schedulers = Quotas(source), Schedulers(source)
    return MappingProxyType(
        {
            "AddTags": tags.add,
            "BatchAddClusterNodes": AddBatch(source).add,
            "BatchDeleteClusterNodes": batches.delete,
            "BatchRebootClusterNodes": batches.reboot,
            "BatchReplaceClusterNodes": batches.replace,
            "CreateCluster": clusters.create,
            "CreateClusterSchedulerConfig": schedulers.create,
            "CreateComputeQuota": quotas.create,
            "DeleteCluster": clusters.delete,
            "DeleteClusterSchedulerConfig": schedulers.delete,
            "DeleteComputeQuota": quotas.delete,
            "DeleteTags": tags.delete,
            "DescribeCluster": clusters.describe,
            "DescribeClusterEvent": events.describe_event,
            "DescribeClusterNode": nodes.describe_node,
            "DescribeClusterOperation": scalings.describe_operation,
            "DescribeClusterSchedulerConfig": schedulers.describe,
            "DescribeComputeQuota": quotas.describe,
            "ListClusterEvents": events.list_events,
            "ListClusterNodes": nodes.list_nodes,
            "ListClusterOperations": scalings.list_operations,
            "ListClusterSchedulerConfigs": schedulers.list_schedulers,
            "ListClusters": clusters.list_clusters,
            "ListComputeQuotas": quotas.list_quotas,
            "ListTags": tags.list_tags,
            "StartClusterHealthCheck": HealthFilter(source).start,
            "UpdateCluster": clusters.update,
            "UpdateClusterSchedulerConfig": schedulers.update,
            "UpdateClusterSoftware": Software(source).update,
            "UpdateComputeQuota": quotas.update,
        }
    )
