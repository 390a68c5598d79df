"""Print what Steward and the named extras depend on, one requirement a line, from pyproject.toml alone."""

import sys
import tomllib
from pathlib import Path


def requirements(pyproject: Path, extras: list[str]) -> list[str]:
    """The project's dependencies and those of each extra, in the order they are written."""
    project = tomllib.loads(pyproject.read_text())["project"]
    found: list[str] = list(project["dependencies"])
    for extra in extras:
        found += project["optional-dependencies"][extra]
    return found


if __name__ == "__main__":
    print("\n".join(requirements(Path(sys.argv[1]), [extra for extra in sys.argv[2].split(",") if extra])))
