"""What the daemons wait for at most is long here: a busy machine is slow, and no test of these limits is among them."""

from collections.abc import Iterator

import pytest

from steward import client
from steward.adapters.wire import frames, seal
from steward.head import origin
from tests.fakes.until import FACT_S

_LIMITS = (
    (client, "_CONNECT_S"),
    (client, "_READ_S"),
    (frames, "DIAL_TIMEOUT_S"),
    (seal, "MUNGE_TIMEOUT_S"),
    (origin, "_LOOK_UP_S"),
)


@pytest.fixture(autouse=True, scope="module")
def patient() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name in _LIMITS:
            patch.setattr(module, name, FACT_S)
        yield
