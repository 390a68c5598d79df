"""The power command of a bed of fixed machines, as a site has one for its management controllers."""

import shlex
import sys
from pathlib import Path

_SCRIPT = """#!/bin/sh
# node-power cycle NODE: cut the power of a node's machine and switch it on again.
set -eu
[ "$1" = cycle ]
inject() {{ {python} -m steward.testbed inject --dir {bed} "$@"; }}
inject kill-node "$2"
inject start-node "$2"
"""


def write_node_power(path: Path, bed: Path) -> None:
    """Make the command; it works on the bed in the directory `bed`."""
    path.write_text(_SCRIPT.format(python=shlex.quote(sys.executable), bed=shlex.quote(str(bed))))
    path.chmod(0o755)
