"""The `[provider.*]` tables of the test beds' providers."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from steward.model.section import Section
from steward.model.setting_types import FullPath, Words
from steward.model.settings.errors import problems_in
from steward.ports import Permanent

S = TypeVar("S", bound=Section)


class LocalSettings(Section):
    """The local test bed: an instance is a slurmd and its agent as processes of this machine."""

    dir: FullPath = Field(description="The test bed's directory.")


class DockerSettings(Section):
    """The docker test bed: an instance is a container."""

    image: str = Field(min_length=1, description="Image of a node.")
    network: str = Field(min_length=1, description="Network that the nodes are on.")
    cluster: str = Field(min_length=1, description="Label that tells this test bed's containers from others'.")
    engine: str = Field(default="unix:///var/run/docker.sock", description="Socket of the engine.")
    mounts: Words = Field(default=(), description="Further binds of a node, `SOURCE:TARGET[:ro]`.")
    hosts: Words = Field(
        default=(),
        description="`NAME=ADDRESS` of every machine, known to all nodes; a node gets the address of its name.",
    )
    environment: Words = Field(default=(), description="`NAME=VALUE` words that a node's first process gets.")
    faults: FullPath | None = Field(
        default=None, description="Directory in which a file `refuse-launch` makes launches fail for want of capacity."
    )


def read_table(name: str, table: Mapping[str, Any], model: type[S]) -> S:
    """Return the table of this provider as its model. Raises Permanent that names each wrong key."""
    try:
        return model.model_validate_json(json.dumps(table))
    except ValidationError as error:
        raise Permanent("; ".join(f"provider.{name}.{problem}" for problem in problems_in(error, model))) from error
