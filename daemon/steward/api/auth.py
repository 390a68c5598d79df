"""Permit a change only to root, SlurmUser or an admin, by a MUNGE credential made for this very request."""

from steward.api.user_names import login
from steward.model.access import Asker, Identity, for_cluster, payload
from steward.ports import MungePort, Permanent, Retryable

SCHEME = "MUNGE"


class Refused(Exception):
    """The caller has no permission, or no valid proof of identity; the text says what to do."""


class Unproved(Refused):
    """The request carries no MUNGE credential."""


class Gatekeeper:
    """A check of callers by their MUNGE credentials.

    A credential is valid once on this host, because munged refuses replays. If it names a cluster, it is valid for
    `cluster` only.
    """

    def __init__(self, munge: MungePort, allowed: frozenset[int], cluster: str = "") -> None:
        self._munge, self._allowed, self._cluster = munge, allowed, cluster

    def admit(self, authorization: str, method: str, path: str, body: bytes) -> str:
        """Return the login name of a caller who may change things.

        Raises Refused, or Retryable if munged does not answer.
        """
        credential = _credential(authorization, "root or SlurmUser")
        identity = self.identify(credential, payload(method, path, body))
        if identity.read_only:
            raise Refused(f"{identity.user} may not do this: root, SlurmUser and `api.admins` may")
        return identity.user

    def may_read_of(self, owner: int, authorization: str, method: str, path: str) -> bool:
        """Return whether the caller of a page that is open to all proved to be `owner` or an admin.

        A bad proof is no error: the caller may still read what all may read.
        """
        try:
            asker = self.asker(authorization, method, path)
        except (Refused, Retryable):
            return False
        return asker.is_admin or asker.uid == owner

    def asker(self, authorization: str, method: str, path: str) -> Asker:
        """Return the caller of a page that is not open to all.

        Raises Unproved without a credential, Refused for a bad one, Retryable if munged does not answer.
        """
        uid = self._maker(_credential(authorization, "yourself"), payload(method, path, b""))
        return Asker(uid=uid, is_admin=uid in self._allowed)

    def identify(self, credential: str, carries: bytes) -> Identity:
        """Return the identity of the credential's maker; read-only for any user but admins. Raises as `admit` does."""
        uid = self._maker(credential, carries)
        return Identity(user=login(uid), method="munge", read_only=uid not in self._allowed)

    def _maker(self, credential: str, carries: bytes) -> int:
        try:
            uid, carried = self._munge.decode(credential.strip())
        except Permanent as error:
            raise Refused(f"the MUNGE credential is not valid: {error}") from error
        if carried not in (carries, for_cluster(carries, self._cluster)):
            raise Refused(f"the MUNGE credential was made for another request{_other_cluster(carried, carries)}")
        return uid


def _credential(authorization: str, maker: str) -> str:
    scheme, _, credential = authorization.partition(" ")
    if scheme != SCHEME or not credential:
        raise Unproved(f"this needs proof of who you are: use the `steward` command, as {maker}")
    return credential


def _other_cluster(carried: bytes, carries: bytes) -> str:
    if not carried.startswith(carries + b" "):
        return ""
    return "'s cluster: is cluster.name of the settings the same there and at the head?"
