"""A munged of our own, with a key of its own."""

import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.until import FACT_S

UP_S = FACT_S


def is_installed() -> bool:
    return shutil.which("munged") is not None and shutil.which("munge") is not None


@contextmanager
def a_munged() -> Iterator[Path]:
    """Its socket, while it runs."""
    with tempfile.TemporaryDirectory(prefix="steward-munge-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        key = folder / "key"
        key.write_bytes(secrets.token_bytes(64))
        key.chmod(0o400)
        names = {"socket": "sock", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        options = [f"--{option}={folder / file}" for option, file in names.items()]
        munged = subprocess.Popen(["munged", "--foreground", *options], stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + UP_S
            while not (folder / "sock").exists():
                assert time.monotonic() < end, "munged does not come up"
                time.sleep(0.02)
            yield folder / "sock"
        finally:
            munged.terminate()
            munged.wait(10)


def short_lived(socket: Path, payload: str, ttl_s: int) -> str:
    """A credential that is good for that long, by the command of MUNGE's own."""
    argv = ["munge", f"--socket={socket}", f"--ttl={ttl_s}", f"--string={payload}"]
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=FACT_S).stdout.strip()
