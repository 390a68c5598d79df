"""`python -m steward.units head|agent|nvhcd [--root DIR]`: install the units of a daemon. Enables nothing."""

import argparse
import sys
from importlib import resources
from pathlib import Path

from steward.model.text import cause_and_file

_UNITS = {
    "head": ("stewardd.service",),
    "agent": ("steward-agent.service", "run-steward-jobs.mount"),
    "nvhcd": ("steward-nvhcd.service",),
}
_FOLDERS = {
    ".service": "etc/systemd/system",
    ".mount": "etc/systemd/system",
    ".sysusers": "etc/sysusers.d",
    ".tmpfiles": "etc/tmpfiles.d",
}


def render(name: str, bin_dir: Path) -> str:
    """Return the text of a shipped file, with the folder of this Steward's programs filled in."""
    return resources.files("steward.units").joinpath(name).read_text().replace("@BIN@", str(bin_dir))


def install(daemon: str, root: Path, bin_dir: Path) -> list[Path]:
    """Write the daemon's units, the sysusers and the tmpfiles below `root`; return the written files.

    Raises OSError if `root` cannot be written.
    """
    written = []
    for name in (*_UNITS[daemon], "steward.sysusers", "steward.tmpfiles"):
        kind = Path(name).suffix
        file = root / _FOLDERS[kind] / ("steward.conf" if kind in (".sysusers", ".tmpfiles") else name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(name, bin_dir))
        written.append(file)
    return written


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m steward.units", description=__doc__)
    parser.add_argument("daemon", choices=sorted(_UNITS))
    parser.add_argument("--root", type=Path, default=Path("/"), help="install below this directory")
    arguments = parser.parse_args()
    try:
        written = install(arguments.daemon, arguments.root, Path(sys.executable).parent)
    except OSError as error:
        print(f"cannot install the units: {cause_and_file(error)}; run this as root", file=sys.stderr)
        return 1
    print("\n".join(str(file) for file in written))
    return 0


if __name__ == "__main__":
    sys.exit(main())
