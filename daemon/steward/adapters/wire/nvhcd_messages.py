"""The answer of the protocol `nvhcd` (docs/hooks.md) as protobuf writes it. Four fields need no compiler of schemas.

message HealthCheckResponse { bool success = 1; int32 exit_code = 2; string output = 3; string error = 4; }
"""

from dataclasses import dataclass

SERVICE = "nvhcd.HealthCheckService"
METHOD = "RunHealthCheck"

_SUCCESS, _EXIT_CODE, _OUTPUT, _ERROR = 1, 2, 3, 4
_VARINT, _BYTES = 0, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheckResponse:
    """`exit_code` is 0 to 255; `output` is the JSON that a client looks at when `success` is set."""

    success: bool
    exit_code: int
    output: str
    error: str = ""


def packed(response: HealthCheckResponse) -> bytes:
    """The response in proto3's encoding, in which a field with its default is left out."""
    return b"".join(
        (
            _number(_SUCCESS, int(response.success)),
            _number(_EXIT_CODE, response.exit_code),
            _text(_OUTPUT, response.output),
            _text(_ERROR, response.error),
        )
    )


def _number(field: int, value: int) -> bytes:
    return _tag(field, _VARINT) + _varint(value) if value else b""


def _text(field: int, text: str) -> bytes:
    content = text.encode()
    return _tag(field, _BYTES) + _varint(len(content)) + content if content else b""


def _tag(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have the eighth bit."""
    content = bytearray()
    while value > 0x7F:
        content.append(value & 0x7F | 0x80)
        value >>= 7
    content.append(value)
    return bytes(content)
