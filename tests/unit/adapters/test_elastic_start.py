"""A node's own address, by the route to its heads."""

import pytest

from steward.adapters.node.elastic_start import address_towards

UNKNOWN = ("no-such-host.invalid", 6861)


def test_the_address_is_that_of_the_route_to_the_first_head_whose_name_is_known() -> None:
    assert address_towards([UNKNOWN, ("127.0.0.1", 6861)]) == "127.0.0.1"
    assert address_towards([("127.0.0.1", 6861), UNKNOWN]) == "127.0.0.1"


def test_without_a_known_head_there_is_none() -> None:
    with pytest.raises(OSError, match=r"."):
        address_towards([UNKNOWN])
