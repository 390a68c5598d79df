"""What a site's command is told and how its answer is read. Unknown fields are ignored, everything else is checked."""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from steward.adapters.process import show
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.ports import Permanent, PortError, Retryable

VERSION = 1
_ID = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$"
_NODE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$"
_STATES = {state.value: state for state in InstanceState}


class Trouble(Enum):
    """The words of `{"error": ...}`."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    RETRY = "retry"
    PERMANENT = "permanent"


class Answer(BaseModel):
    """Fields that we do not know are for other versions of us."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


class Machine(Answer):
    """One entry of `list`, and the answer of `launch`."""

    id: str = Field(pattern=_ID)
    node: str = Field(pattern=_NODE)
    state: Annotated[InstanceState, BeforeValidator(lambda word: _STATES.get(word, InstanceState.UNKNOWN))]
    token: str = Field(default="", max_length=256)
    launched: float = 0.0
    address: str = Field(default="", max_length=256)
    type: str = Field(default="", max_length=64)
    interrupted: str = Field(default="", max_length=400)

    def instance(self, token: str = "") -> Instance:
        return Instance(
            id=InstanceId(self.id),
            node=NodeName(self.node),
            state=self.state,
            token=self.token or token,
            launched=self.launched,
            address=self.address,
            type=self.type,
            interrupted=show(self.interrupted),
        )


class Launched(Answer):
    """The answer of `launch`."""

    instance: Machine


class Listed(Answer):
    """The answer of `list`."""

    instances: tuple[Machine, ...]


class Refused(Answer):
    """An answer of any command that did not do what it was asked."""

    error: Trouble
    text: str = "no reason given"


A = TypeVar("A", bound=Answer)


def asked(action: str, **words: Any) -> bytes:
    """One JSON object with an end of line."""
    return json.dumps({"version": VERSION, "action": action, **words}, separators=(",", ":")).encode() + b"\n"


def slot_words(slot: Slot) -> Mapping[str, Any]:
    return {
        "node": slot.node,
        "group": slot.group,
        "role": slot.role,
        "types": list(slot.types),
        "image": slot.image,
        "release": slot.release,
        "features": sorted(slot.features),
    }


def answered(kind: type[A], text: bytes, who: str) -> A:
    """Raises Retryable, naming the field that is wrong: what the command did is not known."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "answer"
        said = "nothing" if not text.strip() else repr(show(text[:200].decode("utf-8", "replace")))
        raise Retryable(f"{who}: {place}: {show(first['msg'])}; it printed {said} (see docs/providers.md)") from None


def refusal(text: bytes, who: str) -> PortError | None:
    """The command's own word for why it did not do it; None when it gave none."""
    try:
        refused = Refused.model_validate_json(text)
    except ValidationError:
        return None
    said = show(refused.text)
    match refused.error:
        case Trouble.CAPACITY | Trouble.QUOTA:
            return Retryable(f"{refused.error.value}: {who}: {said}")
        case Trouble.RETRY:
            return Retryable(f"{who}: {said}")
        case Trouble.PERMANENT:
            return Permanent(f"{who}: {said}")
