"""One served API for each test that asks for it."""

from collections.abc import Iterator

import pytest

from tests.fakes.api_bench import ApiBench, an_api
from tests.fakes.aws_bench import HANDLERS, AwsBench, an_aws_endpoint


@pytest.fixture
def api() -> Iterator[ApiBench]:
    with an_api() as bench:
        yield bench


@pytest.fixture
def aws() -> Iterator[AwsBench]:
    with an_aws_endpoint(HANDLERS) as bench:
        yield bench
