"""Whatever is ordered about quotas: hostile names never become a team, what is refused changes nothing, in one line."""

import re
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.model.accounting import why_no_team
from steward.model.arn import slurm_cluster_arns
from steward.model.machine_types import BUILT_IN
from steward.model.memory import Memory
from steward.model.order import Order
from steward.model.quota import PriorityClass, QuotaStatus, Share, Strategy
from steward.model.quota_order import (
    ApplyQuotas,
    CreateQuota,
    CreateScheduler,
    DeleteQuota,
    DeleteScheduler,
    QuotaWish,
    SchedulerWish,
    UpdateQuota,
    UpdateScheduler,
)
from steward.policy.orders import carry_out
from tests.builders.api_cluster import ApiPicture, nothing
from tests.builders.orders import tried, with_rules

HEAD = with_rules(nothing(), types=BUILT_IN)
ARN = slurm_cluster_arns(None, HEAD.want.capacity)[0]
SAFE = re.compile(r"[a-z0-9][-_.a-z0-9]{0,39}")
_BROKEN = [
    "a;reboot",
    "$(id)",
    "`id`",
    "a b",
    "a,b",
    "a=b",
    "a\nb",
    "a\x00b",
    "a'b",
    'a"b',
    "*",
    "a|b",
    "/etc",
    "..",
    "A",
]
_STRANGE = ["Ärzte", "\u202eabc", "a\u0301", "where name=root", "set GrpTRES=", "-i", "--immediate", ""]
HOSTILE = st.sampled_from(["root", "stw-a", "stw-a-g", *_BROKEN, *_STRANGE])
ANY_NAME = st.text(max_size=50) | HOSTILE | st.from_regex(r"[a-z0-9._-]{1,45}", fullmatch=True)
NAMES = st.sampled_from(["vision", "audio", "robots"])
SHARES = st.lists(
    st.builds(
        Share,
        machine_type=st.sampled_from(["ml.g6.12xlarge", "ml.p5.48xlarge", "ml.c5.large", "odd"]),
        count=st.none() | st.integers(0, 3),
        accelerators=st.none() | st.integers(0, 9),
        vcpu=st.none() | st.floats(0, 1e7),
        partition=st.none() | st.just(("1g.10gb", 2)),
    ),
    max_size=2,
).map(tuple)
WISHES = st.builds(
    QuotaWish,
    team=st.none() | NAMES | HOSTILE,
    weight=st.none() | st.integers(0, 100),
    shares=st.none() | SHARES,
    strategy=st.none() | st.sampled_from(Strategy),
    borrow_absolute=st.none() | SHARES,
    enabled=st.none() | st.booleans(),
)
CLASSES = st.lists(st.builds(PriorityClass, name=NAMES, weight=st.integers(0, 100)), max_size=2).map(tuple)
SCHEDULERS = st.builds(SchedulerWish, classes=st.none() | CLASSES, fair_share=st.none() | st.booleans())
WHO, VERSIONS = st.just("ann"), st.integers(1, 3)


@st.composite
def orders(draw: st.DrawFn, memory: Memory) -> Order:
    ids = st.sampled_from(sorted(memory.quotas) or ["abcdef012345"])
    configs = st.just(memory.scheduler.id if memory.scheduler else "abcdef012345")
    made: Order = draw(
        st.one_of(
            st.builds(CreateQuota, who=WHO, cluster=st.just(ARN), name=NAMES, wish=WISHES),
            st.builds(UpdateQuota, who=WHO, id=ids, version=VERSIONS, wish=WISHES),
            st.builds(DeleteQuota, who=WHO, id=ids),
            st.builds(CreateScheduler, who=WHO, cluster=st.just(ARN), name=NAMES, wish=SCHEDULERS),
            st.builds(UpdateScheduler, who=WHO, id=configs, version=VERSIONS, wish=SCHEDULERS),
            st.builds(DeleteScheduler, who=WHO, id=configs),
            st.builds(
                ApplyQuotas,
                who=WHO,
                quotas=st.lists(st.tuples(NAMES, WISHES), max_size=3).map(tuple),
                scheduler=st.none() | st.tuples(NAMES, SCHEDULERS),
                prune=st.booleans(),
            ),
        )
    )
    return made


@given(ANY_NAME)
def test_a_name_that_is_let_pass_is_harmless_to_slurms_commands(name: str) -> None:
    if not why_no_team(name):
        assert SAFE.fullmatch(name)
        assert name != "root"
        assert not name.startswith("stw-")


@given(ANY_NAME)
def test_a_team_is_made_or_refused(name: str) -> None:
    done = tried(CreateQuota(who="ann", cluster=ARN, name="q", wish=QuotaWish(team=name, shares=())), HEAD)
    assert (done is None) == bool(why_no_team(name))
    assert done is None or [each.team for each in done.memory.quotas.values()] == [name]


@settings(max_examples=150)
@given(st.data())
def test_orders_keep_one_quota_for_a_name_and_a_team_and_versions_that_only_grow(data: st.DataObject) -> None:
    picture: ApiPicture = HEAD
    for _ in range(data.draw(st.integers(1, 6))):
        before = picture.memory
        done = tried(data.draw(orders(before)), picture)
        if done is None:
            continue
        quotas = done.memory.quotas
        names, teams = {each.name for each in quotas.values()}, {each.team for each in quotas.values()}
        assert len(names) == len(teams) == len(quotas)
        assert not any(map(why_no_team, teams))
        taken_over = {
            id for id, old in before.quotas.items() if old.status is QuotaStatus.DELETING and id not in quotas
        }
        assert all(quotas[id].version >= old.version for id, old in before.quotas.items() if id not in taken_over)
        assert done.memory == before or done.events
        picture = replace(picture, memory=done.memory)
        picture = picture.see(at=picture.seen.at + 1)


@settings(max_examples=50)
@given(st.lists(st.tuples(NAMES, WISHES), max_size=3).map(tuple))
def test_a_document_that_was_applied_changes_nothing_the_second_time(quotas: tuple[tuple[str, QuotaWish], ...]) -> None:
    order = ApplyQuotas(who="ann", quotas=quotas)
    done = tried(order, HEAD)
    if done is not None:
        again = carry_out(order, done.memory, HEAD.seen, HEAD.want)
        assert (again.memory, again.events) == (done.memory, ())
