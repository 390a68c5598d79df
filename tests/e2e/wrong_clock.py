"""A clock that is wrong for one program alone: nodes of a test bed share the kernel's."""

from collections.abc import Mapping
from pathlib import Path

BEHIND_S = 45.0

_SHIFT = f"""import time

_real = time.time
time.time = lambda: _real() - {BEHIND_S}
"""


def wrong_clock(folder: Path) -> Mapping[str, str]:
    """The environment in which Python's clock is `BEHIND_S` behind; made below `folder`."""
    place = folder / "clock"
    place.mkdir()
    (place / "sitecustomize.py").write_text(_SHIFT)
    return {"PYTHONPATH": str(place)}
