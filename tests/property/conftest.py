"""A property test's examples are bounded by CPU time, not only by number: a slow or busy machine looks at fewer."""

import functools
import os
import time
from collections.abc import Callable

import pytest
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.strategies import DataObject

CPU_S = float(os.environ.get("PROPERTY_CPU_S", "2"))
"""Of one test; the examples that are named, and FEWEST drawn ones (fewer beside named ones), are always looked at."""
FEWEST = 5
_FEWEST_BESIDE_NAMED = 2
"""Those that are named were worth to be kept, and stories of minutes have several."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        handle = getattr(getattr(item, "obj", None), "hypothesis", None)
        if handle is not None and isinstance(item, pytest.Function):
            named = len(getattr(item.obj, "hypothesis_explicit_examples", ()))
            handle.inner_test = bounded(handle.inner_test, always=named + (_FEWEST_BESIDE_NAMED if named else FEWEST))


def bounded(test: Callable[..., None], always: int, cpu_s: float = CPU_S) -> Callable[..., None]:
    """The test, which passes at once when it has run for `cpu_s` in all. One that draws while it runs goes on to its
    number, and one that failed is looked at for as long as Hypothesis wants: what it repeats must fail each time, else
    it calls the test flaky and says nothing of the example."""
    spent_s, count, failed = 0.0, 0, False

    @functools.wraps(test)
    def within(*args: object, **kwargs: object) -> None:
        nonlocal spent_s, count, failed
        count += 1
        draws = any(isinstance(value, DataObject) for value in (*args, *kwargs.values()))
        if spent_s > cpu_s and count > always and not draws and not failed:
            return
        began_s = time.process_time()
        try:
            test(*args, **kwargs)
        except UnsatisfiedAssumption:
            raise
        except Exception:
            failed = True
            raise
        finally:
            spent_s += time.process_time() - began_s

    return within
