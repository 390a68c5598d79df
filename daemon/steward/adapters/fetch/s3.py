"""`s3://BUCKET/PREFIX`: all objects below the prefix, or one archive. boto3 finds credentials and region."""

import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from steward.adapters.fetch.folder import FetchBudget, store, unpack
from steward.model.text import cause_and_file
from steward.ports import Permanent, Retryable

_CONNECT_S = 10.0
_READ_S = 30.0
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".zip")
_PASSING = ("SlowDown", "RequestTimeout", "Throttling", "ThrottlingException", "InternalError", "ServiceUnavailable")


def fetch_s3(source: str, folder: Path, budget: FetchBudget) -> None:
    """Fetch the objects. Raises Retryable for a fault of network, service or credentials, Permanent for any other."""
    parts = urlsplit(source)
    key = parts.path.lstrip("/")
    try:
        client = boto3.client("s3", config=_config())
        if key.endswith(_ARCHIVES):
            _fetch_archive(client, parts.netloc, key, folder, budget)
        else:
            _fetch_all(client, parts.netloc, key, folder, budget)
    except ClientError as error:
        raise _port_error_of(source, error) from error
    except ParamValidationError as error:
        raise Permanent(f"{source}: {error}") from error
    except (BotoCoreError, OSError) as error:
        raise Retryable(f"{source}: {cause_and_file(error)}") from error


def _config() -> Any:
    """Return the client's configuration: each call is tried once, since the whole fetch is tried again."""
    return Config(connect_timeout=_CONNECT_S, read_timeout=_READ_S, retries={"total_max_attempts": 1})


def _fetch_archive(client: Any, bucket: str, key: str, folder: Path, budget: FetchBudget) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".download-") as place:
        store(Path(place), "archive", client.get_object(Bucket=bucket, Key=key)["Body"], budget)
        unpack(Path(place) / "archive", folder, budget, single=Path(key).name)


def _fetch_all(client: Any, bucket: str, key: str, folder: Path, budget: FetchBudget) -> None:
    prefix = f"{key.rstrip('/')}/" if key else ""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    found = 0
    for name in (entry["Key"] for page in pages for entry in page.get("Contents", ())):
        if not name.endswith("/"):
            store(folder, name[len(prefix) :], client.get_object(Bucket=bucket, Key=name)["Body"], budget)
            found += 1
    if not found:
        raise Permanent(f"there is no object below s3://{bucket}/{prefix}")


def _port_error_of(source: str, error: ClientError) -> Permanent | Retryable:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    passing = status >= 500 or status == 429 or error.response.get("Error", {}).get("Code") in _PASSING
    return Retryable(f"{source}: {error}") if passing else Permanent(f"{source}: {error}")
