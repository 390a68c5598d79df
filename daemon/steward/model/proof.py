"""What proves a request: both sides make the same text of it, and the caller has munged sign that."""

import hashlib


def payload(method: str, path: str, body: bytes, target: str = "") -> bytes:
    """What a credential must carry to be good for one request and no other; `target`: its X-Amz-Target, if any."""
    return " ".join([method, path, *([target] if target else []), hashlib.sha256(body).hexdigest()]).encode()
