"""What Prometheus gets of the API's groups."""

from steward.model.group import Goal
from steward.model.slot import Hitch, SlotStep
from tests.builders.api_cluster import ApiPicture, an_api_cluster, nothing
from tests.fakes.api_bench import ApiBench


def exposed(*story: ApiPicture) -> list[str]:
    bench = ApiBench()
    for picture in story:
        bench.show_groups(picture)
    return bench.metrics.text().decode().splitlines()


def test_counts_of_a_group_are_gauges() -> None:
    picture = an_api_cluster(3).slot("workers-3", step=SlotStep.SETUP)
    lines = exposed(picture.change_group("workers", goal=Goal(target=5, minimum=1)))
    assert 'steward_group_current{group="workers"} 2.0' in lines
    assert 'steward_group_target{group="workers"} 5.0' in lines
    assert 'steward_group_minimum{group="workers"} 1.0' in lines
    assert 'steward_slots{group="workers",step="setup"} 1.0' in lines


def test_a_group_that_is_gone_leaves_nothing() -> None:
    assert not [line for line in exposed(an_api_cluster(), nothing()) if "workers" in line]


def test_each_failed_try_counts_once_with_its_reason() -> None:
    waiting = an_api_cluster(1).slot("workers-1", step=SlotStep.WAITING, hitch=Hitch.CAPACITY, tries=1)
    again = waiting.slot("workers-1", tries=2)
    lines = exposed(waiting, waiting, again, again)
    assert 'steward_slot_failures_total{group="workers",hitch="capacity"} 2.0' in lines
