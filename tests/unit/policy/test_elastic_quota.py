"""Replica jobs and quotas: always borrowed, and the first that give way."""

import pytest

from steward.model.accounting import Capabilities
from steward.model.action import CancelJob, MoveJob, SetQos, SignalJob
from tests.builders.quota import LISTS, MARKS, WEAK
from tests.builders.quota_site import a_site, borrowed_and_wanted_back, done, waits

REPLICA = "steward-elastic:9:r1"


def test_a_replica_gives_way_before_a_newer_whole_job() -> None:
    picture = borrowed_and_wanted_back(WEAK).change_job(2, comment=REPLICA, requeue=False)
    picture, actions = done(picture)
    assert [(type(each), getattr(each, "job", None)) for each in actions if not isinstance(each, SetQos)] == [
        (SignalJob, 2)
    ]
    later = picture.after(61).plan().actions
    assert [each.job for each in later if isinstance(each, CancelJob)] == [2]


@pytest.mark.parametrize("can", [LISTS, MARKS, WEAK])
def test_a_replica_waits_as_borrowed_although_its_quota_would_cover_it(can: Capabilities) -> None:
    picture = waits(a_site(can), 4, "a", 2, comment=REPLICA)
    _, actions = done(picture)
    assert [each.qos for each in actions if isinstance(each, MoveJob)] == [("stw-a-b",)]
    quiet = waits(a_site(can), 4, "a", 2, comment=REPLICA, qos="stw-a-b")
    assert [each for each in done(quiet)[1] if isinstance(each, MoveJob)] == []
