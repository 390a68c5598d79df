"""Random worlds of quotas on real Slurm: owners do not wait for what others borrowed, nobody goes for nothing, no team
passes its limit, and what `explain` says is true; where Steward ends the grace (22.05), the job for which another one
went starts within the grace and three seconds. By hand, with `WORLDS=200 SEED=0`; `LANE=d SEED=7 WORLDS=1` plays one
again on the machines of lane d."""

import os
import threading
import traceback
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import a_bed
from tests.e2e.groups_bed import give_access
from tests.e2e.quota_bed import SETTINGS, SLURM_CONF, QuotaStory
from tests.e2e.quota_worlds import LANES, NODES_EACH, SCRIPT, Watch, World, hardware, partitions

WORLDS, SEED = int(os.environ.get("WORLDS", "0")), int(os.environ.get("SEED", "0"))
LANE = os.environ.get("LANE", "")


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[QuotaStory]:
    """A cluster of five machine types, three machines of each."""
    with a_bed(
        request,
        nodes=len(LANES) * NODES_EACH,
        steward=True,
        accounting=True,
        hardware=hardware(),
        slurm_conf=f"{SLURM_CONF}\n{partitions()}",
        settings=SETTINGS,
    ) as bed:
        place = bed.shared / "worlds"
        place.mkdir()
        story = QuotaStory(bed=bed, dir=place, access=give_access(bed))
        story.script(SCRIPT, "exec sleep 3600\n")
        yield story


@pytest.mark.skipif(not WORLDS, reason="by hand: WORLDS=200")
@pytest.mark.timeout(300 + 30 * WORLDS)
def test_what_quotas_promise_holds_in_random_worlds(site: QuotaStory) -> None:
    for lane in LANES:
        site.account(*(f"{lane.name}{name}" for name in "xyz"))
    watch = Watch(site)
    watch.start()
    left, done = iter(range(SEED, SEED + WORLDS)), list[World]()
    lock, broken = threading.Lock(), list[str]()

    def play(at: int) -> None:
        ids: dict[str, str] = {}
        while True:
            with lock:
                seed = next(left, None)
            if seed is None:
                return
            world = World(story=site, watch=watch, lane=LANES[at], at=at, seed=seed, ids=ids)
            try:
                world.play()
            except Exception:
                broken.append(f"world {seed} in lane {LANES[at].name}: {traceback.format_exc()}")
            done.append(world)
            print(told([world]), flush=True)

    lanes = [
        threading.Thread(target=play, args=(at,), daemon=True)
        for at in range(len(LANES))
        if LANES[at].name.startswith(LANE)
    ]
    for each in lanes:
        each.start()
    for each in lanes:
        each.join()
    watch.end()
    print(told(done))
    assert not broken, "\n".join(broken)
    assert not [w for w in done if w.wrong], told(done)
    assert not (site.makes_room_itself and [w for w in done if w.late]), told(done)


def told(worlds: list[World]) -> str:
    took = sorted(each for world in worlds for each in world.evictions)
    lines = [f"{len(worlds)} worlds, {len(took)} evictions, {sum(w.reasons for w in worlds)} reasons looked at"]
    lines.append(f"a world took {', '.join(f'{w.took_s:.0f}' for w in worlds)} s")
    if took:
        lines.append(f"from its word to its owner's start: {took[len(took) // 2]:.1f} s, {took[-1]:.1f} s at most")
    for world in sorted(worlds, key=lambda w: w.seed):
        found = [*(f"  WRONG {each}" for each in world.wrong), *(f"  late {each}" for each in world.late)]
        found += [f"  mended while looked at: {each}" for each in world.mended]
        if found:
            teams = "; ".join(f"{t.name} {dict(t.owned)} {t.strategy} {t.percent} %" for t in world.teams.values())
            lines += [f"world {world.seed} in lane {world.lane.name}: {teams}", *found, *world.scene]
    return "\n".join(lines)
