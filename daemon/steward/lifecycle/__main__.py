"""`python -m steward.lifecycle`: started by the agent for one setup, or by a person for the digest of scripts.

run ROOT TOKEN     carry out the setup TOKEN below ROOT in the background; return when the setup has begun
digest FOLDER      print the sha256 of a folder of scripts
"""

import contextlib
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from steward.adapters.fetch.folder import digest
from steward.adapters.node.setup_dir import SetupDir
from steward.lifecycle.run import carry_out
from steward.ports import PortError

_WRONG_USE = 2


def main(words: list[str]) -> int:
    match words:
        case ["run", root, token]:
            return _in_background(SetupDir(Path(root), token))
        case ["digest", folder]:
            print(digest(Path(folder)))
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return _WRONG_USE


def _in_background(run: SetupDir) -> int:
    """Start the setup in the background; return 0 if it has begun or was over, else 1, with the reason on stderr."""
    if run.job() is None:
        print(f"{run.path} holds no order for a setup", file=sys.stderr)
        return 1
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        _detach(run)
        sys.exit(_carry_out(run, writer))
    os.close(writer)
    with os.fdopen(reader) as answer:
        reply = answer.read(1000)
    if reply == "begun":
        return 0
    print(reply or f"the runner died, see {run.crash_log}", file=sys.stderr)
    return 1


def _detach(run: SetupDir) -> None:
    """Start a new session, log crashes, and have SIGTERM raise SystemExit."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(run.crash_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(1)


def _carry_out(run: SetupDir, answer: int) -> int:
    def begun() -> None:
        os.write(answer, b"begun")
        os.close(answer)

    try:
        with run.locked():
            carry_out(run, begun)
    except PortError as error:
        print(error, file=sys.stderr)
        with contextlib.suppress(OSError):  # if the setup had begun, the pipe is closed
            os.write(answer, str(error).encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
