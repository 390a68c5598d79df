"""The identities of API callers, their access keys, and the text of a request that the caller has munged sign.

Caller and head make the same text of a request.
"""

import hashlib
from dataclasses import dataclass, field
from types import MappingProxyType

PRIVATE = MappingProxyType({"private": True})
"""Metadata of a field with output of a user's job: pages, events and logs show it to that user and admins only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """One pair of the access key file. The secret is never shown; a `read_only` key permits Describe and List only."""

    id: str
    secret: str = field(repr=False)
    user: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """An authenticated user; `method` is `sigv4` or `munge`.

    `signature` is empty if the proof itself works only once.
    """

    user: str
    method: str
    read_only: bool
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The authenticated user who asks for a page. `is_admin`: root, SlurmUser or one of `api.admins`."""

    uid: int
    is_admin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller of one request: authenticated user, method, address, and the id of the request."""

    user: str
    method: str
    address: str
    request: str


def payload(method: str, path: str, body: bytes, target: str = "") -> bytes:
    """Return the content of a credential for exactly this request; `target` is its X-Amz-Target, if any."""
    return " ".join([method, path, *([target] if target else []), hashlib.sha256(body).hexdigest()]).encode()


def for_cluster(carries: bytes, cluster: str) -> bytes:
    """Return the payload for this cluster's head only, as clusters may share a MUNGE key; unchanged without a name."""
    return carries + b" " + cluster.encode() if cluster else carries


FOLLOWS_HEADER = "Steward-Follows"
"""The HTTP header of an answer by which a head that follows refuses a request: nothing was done for it."""
STANDSTILL_HEADER = "Steward-Standstill"
"""The HTTP header that marks a page while the head makes no decisions."""
