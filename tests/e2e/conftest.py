"""The clusters of the end-to-end tests, one up at a time, put back in order before each test.

What they are made of, their Slurm and so on are options (tests/conftest.py). A failed test's report ends with the
cluster's logs. With several processes (`TWO` in the Makefile) each has its own cluster, and a file is told in one.
"""

import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from steward_bed import beds
from steward_bed.bed import Backend, Bed, BedSpec, Overrides
from steward_bed.beds import reset
from tests.e2e import health_bed as of_health
from tests.e2e import quota_bed as of_quota
from tests.e2e.capacity import Capacity
from tests.e2e.findings import instance
from tests.e2e.groups_bed import Access, clear, give_access
from tests.e2e.story import Story

HERE = Path(__file__).parent
NODES = 6
_IMPATIENT: Overrides = {"capacity": {"capacity_backoff_s": [0.5, 1.0], "bringup_failures": 30}}
_LOG_LINES = 40
ONLY_LOCAL = (
    "test_benches",
    "test_broken_reader",
    "test_deep.py",
    "test_deep_slow",
    "test_elastic.py",
    "test_elastic_launch",
    "test_elastic_torch",
    "test_fixed",
    "test_hostile_user",
    "test_launch.py",
    "test_local_bed",
    "test_page.py",
    "test_page_sizes",
    "test_beside",
    "test_slurm_reasons_made",
    "test_power",
    "test_programs",
    "test_quickstart",
    "test_real_gpu",
    "test_health_fabric",
    "test_health_hooks",
    "test_health_machine",
    "test_health_view",
    "test_two_heads",
)
"""What the docker bed cannot do, or has a story of its own for."""
TOLD_ONCE = (
    "test_approval",
    "test_capacity_minimum",
    "test_capacity_refusal",
    "test_capacity_rollback",
    "test_decisions",
    "test_elastic",
    "test_gate",
    "test_grow",
    "test_hang",
    "test_health_admin",
    "test_health_breaker",
    "test_health_gpu",
    "test_health_site",
    "test_keep",
    "test_ladder",
    "test_library",
    "test_login_host",
    "test_odd_scripts",
    "test_quota",
    "test_rehearse",
    "test_resume.py",
    "test_resume_hard",
    "test_resume_options",
    "test_resume_parts",
    "test_resume_slurm",
    "test_safety",
    "test_scontrol",
    "test_slurm_reasons",
)
"""Stories that are the same on both beds, on the docker bed only with `--everywhere`, as newer Slurms are told them.
The reverse is the mark `once`."""
MAIN = (
    "test_capacity_create",
    "test_crash",
    "test_decisions",
    "test_gate",
    "test_health_kernel",
    "test_ladder",
    "test_resume.py",
    "test_safety",
)
"""What `--stories main` tells: a node dies under a job, wrong decisions that are not made, the head is killed, a check
finds a fault, a repair, a cluster comes and its partitions open."""
BEDS = ("quota_bed", "groups_bed", "health_bed", "bed")
"""The clusters of the whole session. Stories are told in this order of theirs, so that each is brought up once and one
is up at a time: idle ones take a core's share from the one that is looked at. The shortest files are those of the last
one: so all processes end at about the same time."""
_REPORT = pytest.StashKey[pytest.TestReport]()
_RUNS_ON = pytest.StashKey[Mapping[str, str]]()


@pytest.fixture(scope="session")
def only() -> Iterator[ExitStack]:
    """Holds the session's cluster that is up: who brings up the next one closes it first."""
    with ExitStack() as up:
        yield up


@pytest.fixture(scope="session")
def bed(only: ExitStack, request: pytest.FixtureRequest) -> Bed:
    """A cluster of n1..n6 with Steward. What a test does to it stays: most tests want `story`, which resets it."""
    if given := request.config.getoption("--bed"):
        return beds.find(Path(given))
    only.close()
    return only.enter_context(a_bed(request, nodes=NODES, steward=True))


@pytest.fixture(scope="module")
def plain_bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """A cluster of n1..n3 without Steward: nobody repairs what a test breaks."""
    yield from brought_up(request, nodes=3, steward=False)


@pytest.fixture
def story(bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    """A cluster in order, and a directory of the test's own that every node and user can reach."""
    reset(bed)
    with own_place(bed, request) as place:
        yield Story(bed, place)


@pytest.fixture(scope="session")
def groups_bed(only: ExitStack, request: pytest.FixtureRequest) -> tuple[Bed, Access]:
    """A controller whose nodes come with groups made through its API: n1..n4 those of `workers`."""
    only.close()
    bed = only.enter_context(a_bed(request, nodes=4, steward=True, groups=True, settings=_IMPATIENT))
    return bed, give_access(bed)


@pytest.fixture(scope="session")
def health_bed(only: ExitStack, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """n1..n6 whose nodes may all be broken at once, each in its own way."""
    folder = tmp_path_factory.mktemp("health")
    backend = Backend(request.config.getoption("--backend"))
    settings = of_health.settings(backend, of_health.places(backend, folder))
    only.close()
    only.enter_context(of_health.nhc_within_reach(folder))
    return only.enter_context(a_bed(request, nodes=of_health.NODES, steward=True, settings=settings))


@pytest.fixture(scope="session")
def quota_bed(only: ExitStack, request: pytest.FixtureRequest) -> tuple[Bed, Access]:
    """Two machines of four GPUs with accounting, on which teams may have quotas."""
    only.close()
    bed = only.enter_context(
        a_bed(
            request,
            nodes=2,
            steward=True,
            accounting=True,
            hardware=of_quota.HARDWARE,
            slurm_conf=of_quota.SLURM_CONF,
            settings=of_quota.SETTINGS,
        )
    )
    return bed, give_access(bed)


@pytest.fixture(scope="session")
def left_quotas(quota_bed: tuple[Bed, Access]) -> dict[str, of_quota.Made]:
    """By team, the quotas that the last story left."""
    return {}


@pytest.fixture
def quotas(
    quota_bed: tuple[Bed, Access], left_quotas: dict[str, of_quota.Made], request: pytest.FixtureRequest
) -> Iterator[of_quota.QuotaStory]:
    """No job yet, and no quota: none, or (`quotas_stay`) none but those that the story is going to ask for.

    To make and to delete the quotas of a story takes as long as the story: they are left to the next one.
    """
    bed, access = quota_bed
    stay = request.node.get_closest_marker("quotas_stay") is not None
    with own_place(bed, request) as place:
        story = of_quota.QuotaStory(bed=bed, dir=place, access=access)
        if not stay:
            story.delete_quotas()
        story.left.update(left_quotas if stay else {})
        left_quotas.clear()
        yield story
        report = request.node.stash.get(_REPORT, None)
        if story.is_changed or report is None or report.failed or (kept := story.kept()) is None:
            story.delete_quotas()
            return
        story.end_all()
        left_quotas.update(kept)


@pytest.fixture(scope="module")
def ward(health_bed: Bed, request: pytest.FixtureRequest) -> Iterator[Story]:
    """It in order, for all tests of a file: each node is broken in its own way at the same moment."""
    reset(health_bed)
    with own_place(health_bed, request) as place:
        yield Story(health_bed, place)


@pytest.fixture(scope="module")
def before(ward: Story) -> Mapping[str, str]:
    """Each node's instance, before anything happens to it."""
    return {node: instance(ward, node) for node in ward.bed.spec.node_names}


@pytest.fixture
def capacity(groups_bed: tuple[Bed, Access], request: pytest.FixtureRequest) -> Iterator[Capacity]:
    """No cluster yet, and a directory of the test's own."""
    bed, access = groups_bed
    clear(bed, access)
    with own_place(bed, request) as place:
        yield Capacity(bed=bed, dir=place, access=access)


@contextmanager
def own_jobs(
    site: of_quota.QuotaStory, access: Access, request: pytest.FixtureRequest
) -> Iterator[of_quota.QuotaStory]:
    """A story on a site whose quotas stay: nothing runs yet, and nothing afterwards."""
    with own_place(site.bed, request) as place:
        story = of_quota.QuotaStory(bed=site.bed, dir=place, access=access)
        yield story
        story.end_all()


@contextmanager
def own_place(bed: Bed, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory that every node and user can reach; the report of a failed test ends with the cluster's logs."""
    place = Path(tempfile.mkdtemp(prefix=re.sub(r"\W+", "-", request.node.name)[:60] + "-", dir=bed.shared))
    place.chmod(0o1777)
    yield place
    if (report := request.node.stash.get(_REPORT, None)) is not None and report.failed:
        for name, path in bed.logs().items():
            request.node.add_report_section("teardown", name, _tail(path))
    shutil.rmtree(place, ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is told here (see `is_told`), one cluster after the other."""
    here = [item for item in items if not item.path.is_relative_to(HERE) or is_told(config, item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(here)])
    items[:] = in_order(here)


def is_told(config: pytest.Config, item: pytest.Item) -> bool:
    """A story that is told twice, once with its head killed, is told with that on the local bed and undisturbed on the
    docker bed, which is slower. One that is mostly waiting is told on the docker bed, which has fewer stories."""
    on_docker = config.getoption("--backend") == "docker"
    if item.name.endswith("[head-killed]" if on_docker else "[undisturbed]"):
        return False
    return on_docker or config.getoption("--everywhere") or item.get_closest_marker("once") is None


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """A file's stories stay together, at the place of the last of their clusters; in it, the first clusters come first.
    Told file by file to several processes, a story for itself would have a whole file told, and a cluster brought up,
    too early. Of the files of one cluster those with the most stories come first, so that no process is left alone with
    a long one."""
    files: dict[Path, int] = {}
    for item in items:
        files[item.path] = max(files.get(item.path, 0), which_bed(item))
    sizes = Counter(item.path for item in items)
    places = {path: number for number, path in enumerate(files)}

    def place(item: pytest.Item) -> tuple[int, ...]:
        return files[item.path], -sizes[item.path], places[item.path], which_bed(item)

    return sorted(items, key=place)


def which_bed(item: pytest.Item) -> int:
    """The place of its cluster in `BEDS`; one that has its own comes first, when none of the session is up."""
    names = getattr(item, "fixturenames", ())
    return next((number for number, name in enumerate(BEDS, start=1) if name in names), 0)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What only one backend can do is tested there only; and so is, to save time, what is the same story on both."""
    once = () if config.getoption("--everywhere") else TOLD_ONCE
    name, backend = collection_path.name, config.getoption("--backend")
    if config.getoption("--stories") == "main" and name.startswith("test_") and not name.startswith(MAIN):
        return True
    if name.startswith("test_docker"):
        return None if backend == "docker" else True
    return True if backend == "docker" and name.startswith((*ONLY_LOCAL, *once)) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leaves the test's outcome where its fixtures find it, and what it ran on in the results (tools/tested.py)."""
    on = item.config.stash.get(_RUNS_ON, {})
    if ("bed", on.get("bed")) not in item.user_properties:
        item.user_properties += on.items()
    report = yield
    if report.when == "call":
        item.stash[_REPORT] = report
    return report


def brought_up(
    request: pytest.FixtureRequest,
    *,
    nodes: int,
    steward: bool,
    contain: bool = False,
    fixed_with_spares: int = 0,
    groups: bool = False,
    gpus: int = 0,
    accounting: bool = False,
    heads: int = 1,
    hardware: str = "",
    slurm_conf: str = "",
    settings: Overrides | None = None,
) -> Iterator[Bed]:
    """A cluster for a fixture, taken down at its end."""
    option = request.config.getoption
    spec = BedSpec(
        dir=Path(tempfile.mkdtemp(prefix="steward-e2e-", dir="/tmp")),
        backend=Backend(option("--backend")),
        slurm=option("--slurm"),
        nodes=nodes,
        steward=steward,
        contain=contain,
        spares=fixed_with_spares,
        fixed=fixed_with_spares > 0,
        groups=groups,
        gpus=gpus,
        accounting=accounting,
        heads=heads,
        hardware=hardware,
        slurm_conf=slurm_conf,
        settings=settings or {},
    )
    bed = beds.make(spec)
    try:
        bed.up(lambda line: print(line, file=sys.stderr))
        request.config.stash[_RUNS_ON] = runs_on(bed)
        yield bed
    finally:
        if keep := option("--keep-logs"):
            _keep(bed, Path(keep))
        bed.down()


a_bed = contextmanager(brought_up)


def runs_on(bed: Bed) -> Mapping[str, str]:
    """Slurm and the system under it, as they name themselves."""
    said = bed.run(["sh", "-c", "sinfo -V; . /etc/os-release; echo $PRETTY_NAME"]).text.splitlines()
    return {"bed": bed.spec.backend.value, "slurm": said[0].split()[-1], "os": said[1]}


def _keep(bed: Bed, where: Path) -> None:
    where.mkdir(parents=True, exist_ok=True)
    for name, path in bed.logs().items():
        shutil.copy(path, where / f"{name}.log")


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-_LOG_LINES:])
