"""The messages of the protocol `nvhcd`, made by Google's own library from their schema: the other side of our bytes."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_REQUEST = (("args", 1, _FIELD.TYPE_STRING, _FIELD.LABEL_REPEATED),)
_RESPONSE = (
    ("success", 1, _FIELD.TYPE_BOOL, _FIELD.LABEL_OPTIONAL),
    ("exit_code", 2, _FIELD.TYPE_INT32, _FIELD.LABEL_OPTIONAL),
    ("output", 3, _FIELD.TYPE_STRING, _FIELD.LABEL_OPTIONAL),
    ("error", 4, _FIELD.TYPE_STRING, _FIELD.LABEL_OPTIONAL),
)


def _classes() -> tuple[Any, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="nvhcd.proto", package="nvhcd", syntax="proto3")
    for name, fields in (("HealthCheckRequest", _REQUEST), ("HealthCheckResponse", _RESPONSE)):
        message = file.message_type.add(name=name)
        for field, number, kind, label in fields:
            message.field.add(name=field, number=number, type=kind, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"nvhcd.{name}") for name in ("HealthCheckRequest", "HealthCheckResponse"))
    request, response = (message_factory.GetMessageClass(one) for one in found)
    return request, response


Request, Response = _classes()
