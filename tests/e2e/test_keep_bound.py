"""Nodes that are kept for a resumed job are kept no longer than they may be."""

from collections.abc import Iterator

import pytest

from steward_bed.faults import FaultKind
from tests.e2e.conftest import brought_up, own_place
from tests.e2e.story import Story
from tests.e2e.test_keep import lose_n2, reservations

KEEP_S = 15.0


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Iterator[Story]:
    """Nodes n1..n3, of which a job takes all."""
    for bed in brought_up(request, nodes=3, steward=True, settings={"resume": {"keep_s": KEEP_S}}):
        with own_place(bed, request) as place:
            yield Story(bed, place)


def test_at_the_bound_others_may_have_the_nodes(site: Story) -> None:
    job, other = lose_n2(site)

    site.wait_state(other, "RUNNING", KEEP_S + 20)

    assert "steward-keep" not in reservations(site)
    assert site.job(job).state == "PENDING"
    released = [event["text"] for event in site.events("job.keep_released") if event["job"] == job]
    assert "resume.keep_s" in released[0]
    site.hurt(FaultKind.ALLOW_LAUNCH)
