"""Options of the whole suite. Property tests draw the same examples each time, so that a change is judged by what it
changed; `HYPOTHESIS_PROFILE=random` looks for new ones. No example and no drawing of examples has a deadline: speed is
measured in tests/bench, and a busy machine may stop a test for half a minute."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

for profile, is_same in (("same", True), ("random", False)):
    settings.register_profile(profile, derandomize=is_same, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_collection_finish() -> None:
    """What thousands of tests are made from stays to the end: a garbage collection that looks at all of it stops
    whatever test it falls into for half a second."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """But with `--stories all`, what takes minutes is left for the whole run."""
    if config.getoption("--stories") == "all":
        return
    long = {item for item in items if item.get_closest_marker("long")}
    items[:] = [item for item in items if item not in long]
    config.hook.pytest_deselected(items=long)


def pytest_addoption(parser: pytest.Parser) -> None:
    choices, but = ("all", "most", "main"), "most: but for those of minutes; main: of these the main ones"
    parser.addoption("--stories", choices=choices, default="all", help=but)
    group = parser.getgroup("test bed of the end-to-end tests")
    group.addoption("--backend", choices=("local", "docker"), default="local", help="what it is made of")
    group.addoption("--everywhere", action="store_true", help="on each one also what the other one suffices for")
    group.addoption("--slurm", default="", metavar="VERSION", help="its Slurm, such as 24.11 (default: what is there)")
    group.addoption("--bed", default="", metavar="DIR", help="use the one that is up in DIR, and leave it up")
    group.addoption("--requeues", type=int, default=15, help="how often a job is requeued in a row (3 s each)")
    group.addoption("--keep-logs", default="", metavar="DIR", help="copy its logs here before it goes down")
