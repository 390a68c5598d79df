"""What the site wants in tests."""

from typing import Any, TypeVar

from steward.model.desired import Desired
from steward.model.health_policy import HealthPolicy
from steward.model.section import Section

_Section = TypeVar("_Section", bound=Section)
_UNSAID = HealthPolicy(features=False)


def a_want(**fields: Any) -> Desired:
    """The defaults, but for these fields and the features that users choose nodes by: most tests are about others."""
    return Desired(**{"health": _UNSAID, **fields})


def but(policy: _Section, **fields: Any) -> _Section:
    """The same policy with these keys, which may be shorter than a file may say: stories of hours pass in a second."""
    assert fields.keys() <= type(policy).model_fields.keys(), f"no such key: {fields.keys()}"
    return policy.model_copy(update=fields)
