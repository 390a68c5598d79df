"""Training scripts, each in a process of its own, that may import little."""

import os
import subprocess
import sys
from collections.abc import Collection

_SCRIPT = """
import sys, time
{body}
assert not [name for name in sys.modules if name.startswith("steward.") and not name.startswith("steward.job")]
assert not [name for name in {without} if name in sys.modules]
"""


def printed_by(body: str, without: Collection[str], **env: str) -> str:
    """What it printed; `without`: modules that it must not have loaded."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("STEWARD_")} | env
    argv = [sys.executable, "-P", "-c", _SCRIPT.format(body=body, without=list(without))]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
