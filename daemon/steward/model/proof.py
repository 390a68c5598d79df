"""The proof of a request: both sides make the same text of it, and the caller has munged sign that."""

import hashlib


def payload(method: str, path: str, body: bytes, target: str = "") -> bytes:
    """The content of a credential that is good for one request and no other; `target`: its X-Amz-Target, if any."""
    return " ".join([method, path, *([target] if target else []), hashlib.sha256(body).hexdigest()]).encode()


def for_cluster(carries: bytes, cluster: str) -> bytes:
    """A payload that is good at the head of this cluster alone: several may have one MUNGE key. No name: at all."""
    return carries + b" " + cluster.encode() if cluster else carries
