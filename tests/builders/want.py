"""What the site wants in tests."""

from dataclasses import replace
from typing import Any, TypeVar

from steward.model.agent_tables import HealthPolicy
from steward.model.desired import Desired
from steward.model.repair_policy import RepairPolicy
from steward.model.section import Section
from steward.model.setting_types import RepairMode

_Table = TypeVar("_Table", bound=Section | HealthPolicy)


def a_want(**fields: Any) -> Desired:
    """Nodes are repaired; without the features that users choose nodes by: most tests are about others."""
    return Desired(**{"health": HealthPolicy(features=False), "repair": acts(), **fields})


def acts(**fields: Any) -> RepairPolicy:
    """The defaults of `[repair]`, but for these keys, on a site that wrote mode = "act"."""
    return but(RepairPolicy(mode=RepairMode.ACT), **fields)


def but(policy: _Table, **fields: Any) -> _Table:
    """The same policy with these keys, which may be shorter than a file may say: stories of hours pass in a second."""
    if isinstance(policy, HealthPolicy):
        return replace(policy, **fields)
    assert fields.keys() <= type(policy).model_fields.keys(), f"no such key: {fields.keys()}"
    return policy.model_copy(update=fields)
