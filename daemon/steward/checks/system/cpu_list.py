"""The kernel's lists of CPUs, such as `0-3,8`."""

import re

ONLINE = "/sys/devices/system/cpu/online"
_LIST = re.compile(r"^[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?){0,4096}$")


def count(text: str | None) -> int | None:
    """How many CPUs the list names; None where it is none."""
    plain = (text or "").strip()
    if not _LIST.match(plain):
        return None
    return sum(_span(part) for part in plain.split(","))


def _span(part: str) -> int:
    first, _, last = part.partition("-")
    return max(0, int(last or first) - int(first) + 1)
