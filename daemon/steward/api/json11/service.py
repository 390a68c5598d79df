"""Take the served operations, with their shapes, from the model that botocore ships.

Where we accept more than the published model, a row of `OVERRIDES` says so, with its reason.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from botocore.exceptions import DataNotFoundError
from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel, Shape

Document = dict[str, Any]

SERVED = (
    "AddTags",
    "BatchAddClusterNodes",
    "BatchDeleteClusterNodes",
    "BatchRebootClusterNodes",
    "BatchReplaceClusterNodes",
    "CreateCluster",
    "CreateClusterSchedulerConfig",
    "CreateComputeQuota",
    "DeleteCluster",
    "DeleteClusterSchedulerConfig",
    "DeleteComputeQuota",
    "DeleteTags",
    "DescribeCluster",
    "DescribeClusterEvent",
    "DescribeClusterNode",
    "DescribeClusterOperation",
    "DescribeClusterSchedulerConfig",
    "DescribeComputeQuota",
    "ListClusterEvents",
    "ListClusterNodes",
    "ListClusterOperations",
    "ListClusterSchedulerConfigs",
    "ListClusters",
    "ListComputeQuotas",
    "ListTags",
    "StartClusterHealthCheck",
    "UpdateCluster",
    "UpdateClusterSchedulerConfig",
    "UpdateClusterSoftware",
    "UpdateComputeQuota",
)
_READS = ("Describe", "List")


class Service:
    """The model of the served operations.

    It is loaded once, because reading botocore's model takes 50 ms, and only the tenth that is served is kept.
    """

    def __init__(self, document: Document) -> None:
        model = ServiceModel(document, "sagemaker")
        self._operations: dict[str, OperationModel] = {name: model.operation_model(name) for name in SERVED}
        self.target_prefix: str = model.metadata["targetPrefix"]

    def serves(self, operation: str) -> bool:
        return operation in self._operations

    def input_shape(self, operation: str) -> Shape:
        """Return the shape of the operation's input; every served operation has one."""
        return self._operations[operation].input_shape

    def output_shape(self, operation: str) -> Shape | None:
        """Return the shape of the operation's output; None if the answer has an empty body."""
        return self._operations[operation].output_shape


def is_read(operation: str) -> bool:
    """Return whether the operation changes nothing."""
    return operation.startswith(_READS)


def load() -> Service:
    """Return the service from the installed botocore. Raises LookupError with a remedy if an operation is missing."""
    # Parse the served part anew from its text: objects taken from the whole model would keep all of its 8 MiB in
    # memory.
    return Service(json.loads(_served_text()))


def _served_text() -> str:
    try:
        document = Loader().load_service_model("sagemaker", "service-2")
    except DataNotFoundError as error:
        raise LookupError(f"botocore has no model of SageMaker: install botocore 1.44 or newer ({error})") from error
    if missing := [name for name in SERVED if name not in document["operations"]]:
        raise LookupError(f"this botocore does not know {', '.join(missing)}: install botocore 1.44 or newer")
    return json.dumps(_served_part(document))


def _served_part(document: Document) -> Document:
    operations = {name: document["operations"][name] for name in SERVED}
    roots = [
        operation[way]["shape"] for operation in operations.values() for way in ("input", "output") if way in operation
    ]
    errors = [error["shape"] for operation in operations.values() for error in operation.get("errors", ())]
    shapes = document["shapes"]
    return {
        "metadata": document["metadata"],
        "operations": operations,
        "shapes": {name: with_override(name, shapes[name]) for name in _reached(shapes, [*roots, *errors])},
    }


def _reached(shapes: Document, roots: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(_parts(shapes[name]))
    return seen


def _parts(shape: Document) -> Iterator[str]:
    """Return the names of the shapes that a shape is made of."""
    members = [*shape.get("members", {}).values(), *(shape[key] for key in ("member", "key", "value") if key in shape)]
    return (member["shape"] for member in members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A change to a shape: `drop` these constraints, then set `put`; `why` is the reason."""

    drop: frozenset[str] = frozenset()
    put: Mapping[str, Any]
    why: str


OVERRIDES: Mapping[str, Override] = MappingProxyType(
    {
        "ClusterInstanceType": Override(
            drop=frozenset({"enum"}),
            put={"min": 1, "max": 64, "pattern": "[A-Za-z0-9][A-Za-z0-9._-]*"},
            why="a site declares its own machine types; whether one exists is the operation's check",
        ),
        "ClusterSchedulerPriorityClassName": Override(
            put={"max": 40, "pattern": "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"},
            why="the model's own pattern takes exponential time on a name that does not match; this is its language",
        ),
        "ComputeQuotaTargetTeamName": Override(
            put={"max": 40, "pattern": "[a-z0-9](?:[-_.a-z0-9]*[a-z0-9])?"},
            why="the same; and a team is a Slurm account, whose name may have underscores and dots",
        ),
        "MIGProfileType": Override(
            drop=frozenset({"enum"}),
            put={"min": 1, "max": 40, "pattern": "[a-z0-9][a-z0-9.+_-]*"},
            why="a part of a GPU is a GRES type of the site's own (`gpu:1g.10gb`); `doctor` tests whether there is one",
        ),
        "S3Uri": Override(
            put={"pattern": "(https|s3)://([^/]+)/?(.*)|file:///.+"},
            why="a site's lifecycle scripts may lie on a file system that its nodes share",
        ),
    }
)


def with_override(name: str, shape: Document) -> Document:
    """Return the shape with its override, if there is one."""
    override = OVERRIDES.get(name)
    if override is None:
        return shape
    return {key: value for key, value in shape.items() if key not in override.drop} | dict(override.put)
