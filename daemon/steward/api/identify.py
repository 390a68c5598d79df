"""Verify who calls the AWS endpoint, by an AWS signature or a MUNGE credential.

An AWS Signature Version 4 is verified here: botocore makes the canonical request and the signature; this module judges
what is signed, when, and for which region and service. A signed read can be replayed while its timestamp is valid, as
with AWS; a change cannot (see `admission.Replays`).
"""

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials

from steward.api import auth
from steward.api.json11.errors import ApiError, Code
from steward.model.access import AccessKey, Identity, payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as received.

    Header names are lower case; `query` is as sent; `id` is the request id of the answer.
    """

    id: str
    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    address: str

    def header(self, name: str) -> str | None:
        """Return the header's value; repeated ones joined by commas, as HTTP specifies; None if not sent."""
        values = self.all_of(name)
        return ",".join(values) if values else None

    def all_of(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


SCHEME = "AWS4-HMAC-SHA256"
_SERVICE = "sagemaker"
_AUTHORIZATION = re.compile(
    SCHEME + r" +Credential=(?P<key>[^/\s,]{1,128})/(?P<date>[0-9]{8})/(?P<region>[^/\s,]+)/(?P<service>[^/\s,]+)"
    r"/aws4_request, *SignedHeaders=(?P<headers>[a-z0-9;-]+), *Signature=(?P<signature>[0-9a-f]{64})"
)
_TIME = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_ALWAYS_SIGNED = ("host", "x-amz-date", "x-amz-target")
_SIGNED_WHEN_SENT = ("x-amz-security-token", "x-amz-content-sha256")

KeyOf = Callable[[str], AccessKey | None]


class Sigv4:
    """A verifier of AWS signatures.

    `key_of` finds an access key by its id; `skew_s` is the most that the caller's clock may be off, either way.
    """

    def __init__(self, *, key_of: KeyOf, region: str, skew_s: float, now: Callable[[], float]) -> None:
        self._key_of, self._region, self._skew_s, self._now = key_of, region, skew_s, now

    def identify(self, received: Received) -> Identity:
        """Return the identity that signed the request.

        Raises ApiError if the signature is bad, and as `key_of` does.
        """
        claim = _AUTHORIZATION.fullmatch(received.header("authorization") or "")
        if claim is None:
            raise ApiError(Code.INCOMPLETE, f"The Authorization header is not a whole {SCHEME} signature.")
        self._need_scope(claim)
        self._need_time(received, claim["date"])
        signed = claim["headers"].split(";")
        _need_signed(received, signed)
        key = self._key_of(claim["key"])
        if key is None:
            raise ApiError(Code.UNKNOWN_CLIENT, "The access key of the request is not known to this cluster.")
        ours = signature(key, self._region, _SERVICE, received, signed)
        if not hmac.compare_digest(ours, claim["signature"]):
            raise _bad("The signature does not match: check the secret key, and that no proxy changes the request.")
        return Identity(user=key.user, method="sigv4", read_only=key.read_only, signature=ours)

    def _need_scope(self, claim: "re.Match[str]") -> None:
        if claim["region"] != self._region:
            raise _bad(f"Credential should be scoped to region {self._region}: use --region {self._region}.")
        if claim["service"] != _SERVICE:
            raise _bad(f"Credential should be scoped to service {_SERVICE}.")

    def _need_time(self, received: Received, date: str) -> None:
        stamp = received.header("x-amz-date") or ""
        at = _unix_seconds(stamp)
        if at is None or not stamp.startswith(date):
            raise _bad("X-Amz-Date must be a time (YYYYMMDDTHHMMSSZ) on the date of the credential's scope.")
        if abs(at - self._now()) > self._skew_s:
            raise ApiError(
                Code.EXPIRED,
                f"The request is of {stamp}, more than {self._skew_s:g} s from the head's time: set the clocks.",
            )


def signature(key: AccessKey, region: str, service: str, received: Received, signed: list[str]) -> str:
    """Return the signature, in hex, that the holder of `key` would put under this request, which needs X-Amz-Date."""
    url = f"http://head{received.path}" + (f"?{received.query}" if received.query else "")
    request = AWSRequest(method=received.method, url=url, data=received.body)
    request.context["timestamp"] = received.header("x-amz-date")
    signer = _Signer(key, region, service, received, signed)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return str(signer.signature(text, request))


class _Signer(SigV4Auth):  # type: ignore[misc]  # botocore has no types
    """A signer of botocore that signs the headers which the caller signed, not those that botocore would choose."""

    def __init__(self, key: AccessKey, region: str, service: str, received: Received, signed: list[str]) -> None:
        super().__init__(Credentials(key.id, key.secret), service, region)
        self._received, self._signed = received, signed

    def headers_to_sign(self, request: AWSRequest) -> HTTPHeaders:
        headers = HTTPHeaders()
        for name in self._signed:
            for value in self._received.all_of(name):
                headers[name] = value
        return headers


def _need_signed(received: Received, signed: list[str]) -> None:
    """Raise ApiError if a part of the request that matters is not signed: it could be changed on its way."""
    sent = [name for name in _SIGNED_WHEN_SENT if received.header(name) is not None]
    if missing := [name for name in (*_ALWAYS_SIGNED, *sent) if name not in signed]:
        raise _bad(f"{missing[0]} must be a signed header.")
    if absent := [name for name in signed if received.header(name) is None]:
        raise _bad(f"The header {absent[0]} is named as signed but was not sent.")
    digest = received.header("x-amz-content-sha256")
    if digest is not None and digest != hashlib.sha256(received.body).hexdigest():
        raise _bad("X-Amz-Content-SHA256 is not the digest of the body.")


def _unix_seconds(stamp: str) -> float | None:
    try:
        return (
            datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
            if _TIME.fullmatch(stamp)
            else None
        )
    except ValueError:
        return None


def _bad(message: str) -> ApiError:
    return ApiError(Code.SIGNATURE, message)


class Authenticator:
    """A check of the caller's identity, also for reads. Thread-safe; may block until munged answers."""

    def __init__(self, gatekeeper: auth.Gatekeeper, signatures: Sigv4) -> None:
        self._gatekeeper, self._signatures = gatekeeper, signatures

    def identify(self, received: Received) -> Identity:
        """Return the caller's identity.

        Raises ApiError without valid proof, Retryable if munged does not answer, Permanent if the keys cannot be read.
        """
        scheme, _, rest = (received.header("authorization") or "").partition(" ")
        if scheme == SCHEME:
            return self._signatures.identify(received)
        if scheme != auth.SCHEME:
            raise ApiError(Code.NO_TOKEN, "The request is not signed: use an access key, or the `steward` command.")
        target = received.header("x-amz-target") or ""
        try:
            return self._gatekeeper.identify(rest, payload(received.method, received.path, received.body, target))
        except auth.Refused as error:
            raise ApiError(Code.UNKNOWN_CLIENT, str(error)) from error
