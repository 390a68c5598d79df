"""The two ways to say who speaks on the AWS endpoint: an AWS signature, or a MUNGE credential. There is no third."""

from steward.api import auth, sigv4
from steward.api.json11.errors import ApiError, Code
from steward.api.received import Received
from steward.model.access import Identity, payload


class Door:
    """Reads need proof here too. Safe to use from several threads; may block for munged's answer."""

    def __init__(self, gatekeeper: auth.Gatekeeper, signatures: sigv4.Sigv4) -> None:
        self._gatekeeper, self._signatures = gatekeeper, signatures

    def identify(self, received: Received) -> Identity:
        """Raises ApiError, Retryable when munged does not answer, Permanent when the keys cannot be read."""
        scheme, _, rest = (received.header("authorization") or "").partition(" ")
        if scheme == sigv4.SCHEME:
            return self._signatures.identify(received)
        if scheme != auth.SCHEME:
            raise ApiError(Code.NO_TOKEN, "The request is not signed: use an access key, or the `steward` command.")
        target = received.header("x-amz-target") or ""
        try:
            return self._gatekeeper.identify(rest, payload(received.method, received.path, received.body, target))
        except auth.Refused as error:
            raise ApiError(Code.UNKNOWN_CLIENT, str(error)) from error
