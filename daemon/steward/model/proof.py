"""Proofs that the sender of a message knows the secret of both ends, which is never sent."""

import hashlib
import hmac


def proof(secret: str, *words: str) -> str:
    """Return the proof that the sender of `words` knows `secret`."""
    return hmac.new(secret.encode(), "\0".join(words).encode(), hashlib.sha256).hexdigest()


def is_proof(said: object, secret: str, *words: str) -> bool:
    """Return whether `said` is the proof of these words."""
    return isinstance(said, str) and hmac.compare_digest(said.encode(), proof(secret, *words).encode())
