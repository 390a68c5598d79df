"""A property test's examples are bounded by CPU time, not only by number: a slow or busy machine looks at fewer."""

import functools
import os
import time
from collections.abc import Callable

import pytest
from hypothesis.strategies import DataObject

CPU_S = float(os.environ.get("PROPERTY_CPU_S", "3"))
"""Of one test; the examples that are named, and FEWEST drawn ones, are always looked at."""
FEWEST = 5


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        handle = getattr(getattr(item, "obj", None), "hypothesis", None)
        if handle is not None and isinstance(item, pytest.Function):
            named = len(getattr(item.obj, "hypothesis_explicit_examples", ()))
            handle.inner_test = bounded(handle.inner_test, always=named + FEWEST)


def bounded(test: Callable[..., None], always: int) -> Callable[..., None]:
    """The test, which passes at once when it has run for CPU_S in all. One that draws while it runs goes on to its
    number: Hypothesis takes draws that are left out for a test that is not the same each time."""
    spent_s, count = 0.0, 0

    @functools.wraps(test)
    def within(*args: object, **kwargs: object) -> None:
        nonlocal spent_s, count
        count += 1
        draws = any(isinstance(value, DataObject) for value in (*args, *kwargs.values()))
        if spent_s > CPU_S and count > always and not draws:
            return
        began_s = time.process_time()
        try:
            test(*args, **kwargs)
        finally:
            spent_s += time.process_time() - began_s

    return within
