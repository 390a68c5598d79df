"""Who speaks to the API, with which key they prove it, and the proof of a request: both sides make the same text of it,
and the caller has munged sign that."""

import hashlib
from dataclasses import dataclass, field
from types import MappingProxyType

PRIVATE = MappingProxyType({"private": True})
"""Metadata of a field that holds what a user printed: no page, event or log shows it but to him and to admins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """One pair of the access key file. The secret is never shown. `read_only`: good for Describe and List alone."""

    id: str
    secret: str = field(repr=False)
    user: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A proved name; `way` is how it was proved (`sigv4` or `munge`). `signature`: empty where the proof itself is good
    once."""

    user: str
    way: str
    read_only: bool
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who proved to ask for a page. `is_admin`: root, SlurmUser or one of `api.admins`."""

    uid: int
    is_admin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """One request's maker: the proved name, where it came from, and the id by which its maker will ask about it."""

    user: str
    way: str
    address: str
    request: str


def payload(method: str, path: str, body: bytes, target: str = "") -> bytes:
    """The content of a credential that is good for one request and no other; `target`: its X-Amz-Target, if any."""
    return " ".join([method, path, *([target] if target else []), hashlib.sha256(body).hexdigest()]).encode()


def for_cluster(carries: bytes, cluster: str) -> bytes:
    """A payload that is good at the head of this cluster alone: several may have one MUNGE key. No name: at all."""
    return carries + b" " + cluster.encode() if cluster else carries
