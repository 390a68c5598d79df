"""Errors in the form that AWS clients understand: a code, an HTTP status, one line."""

from enum import Enum

CONTENT_TYPE = "application/x-amz-json-1.1"
"""The content type of every request and answer."""


class Code(Enum):
    """The error codes. The first four are in the service's model, and SDKs have exception classes for them."""

    CONFLICT = "ConflictException"
    IN_USE = "ResourceInUse"
    LIMIT_EXCEEDED = "ResourceLimitExceeded"
    NOT_FOUND = "ResourceNotFound"
    ACCESS_DENIED = "AccessDeniedException"
    EXPIRED = "RequestExpired"
    INCOMPLETE = "IncompleteSignatureException"
    INTERNAL = "InternalFailure"
    INVALID = "ValidationException"
    MALFORMED = "SerializationException"
    NO_TOKEN = "MissingAuthenticationTokenException"
    SIGNATURE = "InvalidSignatureException"
    THROTTLED = "ThrottlingException"
    TIMEOUT = "RequestTimeoutException"
    TOO_LARGE = "RequestEntityTooLargeException"
    UNAVAILABLE = "ServiceUnavailable"
    UNKNOWN_CLIENT = "UnrecognizedClientException"
    UNKNOWN_OPERATION = "UnknownOperationException"


_MODELLED = frozenset({Code.CONFLICT, Code.IN_USE, Code.LIMIT_EXCEEDED, Code.NOT_FOUND})
_STATUS = {
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.TOO_LARGE: 413,
    Code.UNKNOWN_OPERATION: 404,
    Code.TIMEOUT: 408,
}


class ApiError(Exception):
    """A refusal by a handler. SDKs retry after THROTTLED, UNAVAILABLE and INTERNAL."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def status(self) -> int:
        return _STATUS.get(self.code, 400)

    def body(self) -> dict[str, str]:
        """Return the body of the answer; the message's member is capitalized only in errors of the service's model."""
        return {"__type": self.code.value, "Message" if self.code in _MODELLED else "message": self.message}


def invalid(message: str) -> ApiError:
    """Return a ValidationException with this message."""
    return ApiError(Code.INVALID, message)


def not_found(message: str) -> ApiError:
    return ApiError(Code.NOT_FOUND, message)
