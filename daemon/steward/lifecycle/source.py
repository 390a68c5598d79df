"""The fetching of lifecycle scripts: the adapter for each kind of source, and the tries."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from steward.adapters.fetch.file import fetch_file
from steward.adapters.fetch.folder import FetchBudget
from steward.adapters.fetch.https import fetch_https
from steward.model.text import cause
from steward.ports import Permanent, Retryable

try:
    from steward.adapters.fetch.s3 import fetch_s3
except ImportError:  # boto3 is not installed
    fetch_s3 = None  # type: ignore[assignment]

TRIES = 8
_FIRST_WAIT_S = 1.0
_LAST_WAIT_S = 30.0

Fetch = Callable[[str, Path, FetchBudget], None]
FETCHES: Mapping[str, Fetch | None] = {"file": fetch_file, "https": fetch_https, "s3": fetch_s3}


def fetch_source(
    source: str,
    folder: Path,
    budget: Callable[[], FetchBudget],
    *,
    told: Callable[[str], None],
    pinned: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Fetch the source's files into `folder`, which then holds nothing else.

    A Retryable fault is tried again after a growing wait, and the last one is raised. Raises Permanent for a fault that
    no further try will mend. `pinned` means that the caller knows the digest of the files.
    """
    scheme = urlsplit(source).scheme
    if scheme not in FETCHES:
        raise Permanent(f"{source}: lifecycle scripts come from {', '.join(f'{each}://' for each in sorted(FETCHES))}")
    get = FETCHES[scheme]
    if get is None:
        raise Permanent(f"{source}: this needs boto3 on the node (`pip install 'steward-slurm[ec2]'`)")
    if get is fetch_file:
        get = partial(fetch_file, pinned=pinned)
    for wait_s in _waits():
        try:
            _empty(folder)
            get(source, folder, budget())
        except Retryable as error:
            if wait_s is None or budget().left_s <= wait_s:
                raise
            told(f"{error}; again in {wait_s:g} s")
            sleep(wait_s)
        else:
            return


def _waits() -> Iterator[float | None]:
    for number in range(TRIES - 1):
        yield min(_FIRST_WAIT_S * 2**number, _LAST_WAIT_S)
    yield None


def _empty(folder: Path) -> None:
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o755, parents=True)
    except OSError as error:
        raise Permanent(f"cannot make {folder}: {cause(error)}; correct agent.setup_dir") from error
