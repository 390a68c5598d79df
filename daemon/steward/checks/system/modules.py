"""The kernel's list of loaded modules. What is built into the kernel is not in it."""

from steward.model.probe import Raw

MODULES = "/proc/modules"


def loaded(raw: Raw) -> frozenset[str] | None:
    """Names, with `_` for `-` as the kernel has them; None where there is no list."""
    text = raw.files.get(MODULES)
    return None if text is None else frozenset(line.split(" ", 1)[0] for line in text.splitlines())
