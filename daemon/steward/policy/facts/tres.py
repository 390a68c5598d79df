"""Resources as Slurm writes them (TRES)."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

_UNITS = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024, "P": 1024**3}


@lru_cache(maxsize=16384)
def parse_tres(text: str) -> Mapping[str, int]:
    """Return `cpu=48,mem=96G,gres/gpu:l4=2` as numbers (memory in MiB), without unreadable parts."""
    found: dict[str, int] = {}
    for word in text.split(","):
        name, _, amount = word.partition("=")
        unit = _UNITS.get(amount[-1:], 0) if amount[-1:].isalpha() else 1
        try:
            found[name] = int(float(amount[:-1] if amount[-1:].isalpha() else amount) * unit)
        except (ValueError, OverflowError):
            continue
    return MappingProxyType(found)
