"""The operations we serve, with their shapes, from the model that botocore ships."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from botocore.exceptions import DataNotFoundError
from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel, Shape

from steward.api.json11.overrides import relaxed

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
    """Made once: reading botocore's model takes 50 ms. What it keeps is the served tenth of that model."""

    def __init__(self, document: Document) -> None:
        model = ServiceModel(document, "sagemaker")
        self._operations: dict[str, OperationModel] = {name: model.operation_model(name) for name in SERVED}
        self.target_prefix: str = model.metadata["targetPrefix"]

    def serves(self, operation: str) -> bool:
        return operation in self._operations

    def input_shape(self, operation: str) -> Shape:
        """Every operation that we serve has one."""
        return self._operations[operation].input_shape

    def output_shape(self, operation: str) -> Shape | None:
        """None: the answer is an empty body."""
        return self._operations[operation].output_shape


def is_read(operation: str) -> bool:
    """It changes nothing."""
    return operation.startswith(_READS)


def load() -> Service:
    """From the installed botocore. Raises LookupError with a remedy when that one does not know an operation.

    The part that is kept is made anew from its text: among the objects of the whole model it would hold up the 8 MiB
    of memory that they take, also when they are gone.
    """
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
        "shapes": {name: relaxed(name, shapes[name]) for name in _reached(shapes, [*roots, *errors])},
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
    """The names of the shapes that a shape is made of."""
    members = [*shape.get("members", {}).values(), *(shape[key] for key in ("member", "key", "value") if key in shape)]
    return (member["shape"] for member in members)
