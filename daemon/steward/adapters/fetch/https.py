"""`https://`: an archive, or one script."""

import tempfile
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import unquote, urlsplit

import requests

from steward.adapters.fetch.folder import FetchBudget, unpack
from steward.model.text import cause_and_file
from steward.ports import Permanent, Retryable

_CONNECT_S = 10.0
_READ_S = 30.0
_CHUNK = 1 << 16
_PASSING = (408, 425, 429)


def fetch_https(source: str, folder: Path, budget: FetchBudget) -> None:
    """Fetch an archive, or one script. Raises Retryable for a fault of network or server, Permanent for any other."""
    name = unquote(PurePosixPath(urlsplit(source).path).name) or "script"
    with tempfile.NamedTemporaryFile(dir=folder.parent, prefix=".download-") as file:
        _download(source, file, budget)
        file.flush()
        unpack(Path(file.name), folder, budget, single=name)


def _download(source: str, file: IO[bytes], budget: FetchBudget) -> None:
    limit = (min(_CONNECT_S, budget.left_s + 0.1), min(_READ_S, budget.left_s + 0.1))
    try:
        with _session() as session, session.get(source, stream=True, timeout=limit) as answer:
            _check_status(source, answer)
            got = sum(_write(file, chunk, budget) for chunk in answer.iter_content(_CHUNK))
            told = answer.headers.get("Content-Length", "")
            if told.isdigit() and "Content-Encoding" not in answer.headers and got != int(told):
                raise Retryable(f"{source}: only {got} of {told} bytes arrived")
    except requests.exceptions.SSLError as error:
        raise Permanent(f"{source}: {_first_cause(error)}") from error
    except requests.exceptions.InvalidSchema as error:
        raise Permanent(f"{source} redirects to an address that is not https: {error}") from error
    except (requests.exceptions.InvalidURL, requests.exceptions.TooManyRedirects) as error:
        raise Permanent(f"{source}: {error}") from error
    except (requests.exceptions.RequestException, OSError) as error:
        raise Retryable(f"{source}: {_first_cause(error)}") from error


def _first_cause(error: BaseException) -> str:
    """Return the system's reason, which the libraries wrap in errors of their own with addresses of objects."""
    while (earlier := error.__cause__ or error.__context__) is not None:
        error = earlier
    return cause_and_file(error) if isinstance(error, Exception) else type(error).__name__


def _session() -> requests.Session:
    """Return a session that uses https only: the scripts run as root, and a redirect may lead anywhere."""
    session = requests.Session()
    del session.adapters["http://"]
    return session


def _write(file: IO[bytes], chunk: bytes, budget: FetchBudget) -> int:
    budget.take(len(chunk))
    return file.write(chunk)


def _check_status(source: str, answer: requests.Response) -> None:
    if answer.status_code >= 500 or answer.status_code in _PASSING:
        raise Retryable(f"{source}: the server answered {answer.status_code}")
    if answer.status_code != 200:
        raise Permanent(f"{source}: the server answered {answer.status_code}")
