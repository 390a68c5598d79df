"""The pages of a head that shows a picture just as it is: nothing is planned on it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from steward.model.events import Event
from steward.model.plan import Plan
from steward.workflows.snapshot import Phases, Snapshot
from tests.builders.picture import Picture
from tests.fakes.api_bench import ApiBench, an_api


def show_as_it_is(api: ApiBench, picture: Picture, number: int = 1) -> None:
    api.clock.at = picture.now
    api.latest = Snapshot(
        at=picture.now,
        number=number,
        seen=picture.seen,
        before=picture.memory,
        memory=picture.memory,
        plan=Plan(actions=(), memory=picture.memory),
        phases=Phases(observe_s=0.02, bell_s=0.03),
    )
    api.news.came(api.latest)


@contextmanager
def pages_of(picture: Picture, events: Sequence[Event] = ()) -> Iterator[ApiBench]:
    bench, cases = ApiBench(), picture.memory.cases.values()
    bench.want = picture.want
    with an_api(bench) as api:
        api.store.memory = picture.memory
        runs = [run for many in picture.memory.ledger.values() for run in many]
        api.store.lines = {**{run.key: run for run in runs}, **{case.id: case for case in cases}}
        api.store.add_events(events)
        show_as_it_is(api, picture)
        yield api
