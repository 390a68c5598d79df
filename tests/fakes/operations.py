"""The operations as the endpoint calls them: input read by the model, answers rendered by it; no network."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pytest

from steward.api.json11.errors import ApiError
from steward.api.json11.render import render
from steward.api.json11.validate import read
from steward.api.operations import handlers
from steward.model.access import Caller
from steward.model.machine_types import MachineType
from steward.model.memory import Memory
from tests.builders.api_cluster import ApiPicture
from tests.builders.want import but
from tests.fakes.api_bench import ApiBench
from tests.fakes.aws_bench import SERVICE

CALLER = Caller(user="platform", method="sigv4", address="127.0.0.1", request="r-1")


@dataclass(frozen=True)
class Operations:
    """On a picture; orders change its memory at once."""

    bench: ApiBench

    @property
    def memory(self) -> Memory:
        assert self.bench.latest is not None
        return self.bench.latest.memory

    def call(self, operation: str, **members: Any) -> dict[str, Any]:
        """The answer, as a client gets it."""
        given = read(SERVICE.input_shape(operation), members)
        answer = handlers(self.bench.source())[operation](CALLER, given)
        shaped = render(SERVICE.output_shape(operation), answer)
        found: dict[str, Any] = json.loads(json.dumps(shaped or {}))
        return found

    def refused(self, operation: str, **members: Any) -> tuple[str, str]:
        """(code, message); a refused call has changed nothing."""
        before = self.memory
        with pytest.raises(ApiError) as refused:
            self.call(operation, **members)
        assert self.memory == before
        return refused.value.code.value, refused.value.message


def operations_on(picture: ApiPicture, types: Mapping[str, MachineType] = MappingProxyType({})) -> Operations:
    """`types` are the machine types that the head knows."""
    bench = ApiBench()
    bench.want = replace(bench.want, capacity=but(bench.want.capacity, types=types))
    bench.show_groups(picture)
    return Operations(bench)
