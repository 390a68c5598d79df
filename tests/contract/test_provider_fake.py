"""The fake provider keeps what every provider promises."""

import pytest

from steward.ports import Retryable
from tests.contract.provider import OTHER, SLOT, ProviderContract
from tests.fakes.provider import FakeProvider


@pytest.fixture
def provider() -> FakeProvider:
    return FakeProvider()


class TestFakeProvider(ProviderContract):
    """All of it."""


def test_without_capacity_a_launch_is_refused_but_a_known_token_is_not(provider: FakeProvider) -> None:
    provider.capacity = 1
    made = provider.launch(SLOT, "t1")

    assert provider.launch(SLOT, "t1") == made
    with pytest.raises(Retryable, match=r"^capacity"):
        provider.launch(OTHER, "t2")
