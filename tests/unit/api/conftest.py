"""One served API for each test that asks for it."""

from collections.abc import Iterator

import pytest

from tests.fakes.api_bench import ApiBench, an_api


@pytest.fixture
def api() -> Iterator[ApiBench]:
    with an_api() as bench:
        yield bench
