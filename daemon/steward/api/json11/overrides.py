"""Where we take more than the service's published model: every exception, with its reason, in one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """`drop` these constraints of the shape, then set `put`."""

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


def relaxed(name: str, shape: Document) -> Document:
    """The shape with its override, if it has one."""
    override = OVERRIDES.get(name)
    if override is None:
        return shape
    return {key: value for key, value in shape.items() if key not in override.drop} | dict(override.put)
