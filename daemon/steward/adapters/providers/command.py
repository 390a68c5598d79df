"""Provider of a site with its own programs that make machines: JSON in, JSON out. `list` decides what exists.

A command ends with status 0 and an answer; with `{"error": "capacity" | "quota" | "retry" | "permanent", "text": ...}`
and any status; with 75 (EX_TEMPFAIL) for "try again"; or with any other status for "will not work" and the reason in
its last line of stderr.
"""

import json
import os
import threading
import time
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from steward.adapters.process import Completed, Failed, run, show
from steward.model.ids import InstanceId, NodeName
from steward.model.instance import Instance, InstanceState, Slot
from steward.model.settings.clouds import CommandProviderSettings as CommandSettings
from steward.ports import Permanent, PortError, Retryable

LIST_TIMEOUT_S = 30.0
_MAX_BYTES = 16 << 20


class CommandProvider:
    """ProviderPort by the site's commands. Safe to call from several threads; the commands must allow that."""

    def __init__(self, settings: CommandSettings, list_timeout_s: float = LIST_TIMEOUT_S) -> None:
        self._settings = settings
        self._list_timeout_s = list_timeout_s
        self._lock = threading.Lock()
        self._tried: dict[str, float] = {}
        """When the last launch with each token ended, well or not; forgotten once a list is newer."""
        self._listed: tuple[float, Mapping[InstanceId, Instance]] | None = None
        """The last list, and when it was requested."""

    def describe(self) -> str:
        words = self._settings
        able = [f"{name} by {show(argv[0])}" for name, argv in (("launch", words.launch), ("list", words.list))]
        return f"command: {', '.join(able)}, {'reboots' if words.reboot else 'no reboots'}"

    def instances(self) -> Mapping[InstanceId, Instance]:
        began = time.monotonic()
        try:
            done = self._run_command(self._settings.list, "list", request_line("list"), self._list_timeout_s)
        except Permanent as error:
            raise Retryable(str(error)) from error  # also for a refusal: the machines are not known now
        machines = parse_answer(Listed, done.stdout, _shown_command(self._settings.list)).instances
        found = {InstanceId(machine.id): machine.instance() for machine in machines}
        if len(found) < len(machines):
            ids = [machine.id for machine in machines]
            twice = next(each for each in ids if ids.count(each) > 1)
            raise Retryable(f"{_shown_command(self._settings.list)}: instance {twice} is listed twice")
        with self._lock:
            self._listed = (began, found)
            self._tried = {token: at for token, at in self._tried.items() if at >= began}
        return MappingProxyType(found)

    def launch(self, slot: Slot, token: str) -> Instance:
        """Launch an instance for the slot, or return the one that the token already has."""
        # A command that was killed may have made the machine: look at the list before another launch.
        known = self._instance_of_token(token)
        if known is not None:
            return known
        words = request_line("launch", slot=slot_words(slot), token=token)
        try:
            done = self._run_command(self._settings.launch, "launch", words, self._settings.timeout_s)
        finally:
            with self._lock:
                self._tried[token] = time.monotonic()
        who = _shown_command(self._settings.launch)
        made = parse_answer(Launched, done.stdout, who).instance.instance(token)
        if (made.node, made.token) != (slot.node, token):
            said = f"node {made.node!r} and token {show(made.token)!r}"
            raise Retryable(f"{who}: asked for {slot.node} with {token!r}, answered {said}")
        return made

    def terminate(self, instance: InstanceId) -> None:
        words = request_line("terminate", instance=instance)
        self._run_command(self._settings.terminate, "terminate", words, self._settings.timeout_s)

    def reboot(self, instance: InstanceId, token: str) -> None:
        if self._settings.reboot is None:
            raise Permanent(f"{instance} cannot be rebooted: set provider.command.reboot to the site's command")
        words = request_line("reboot", instance=instance, token=token)
        self._run_command(self._settings.reboot, "reboot", words, self._settings.timeout_s)

    def _instance_of_token(self, token: str) -> Instance | None:
        """Return the live instance of this token, by a list newer than any try with the token; None if none."""
        # A head before this one may have tried, too: without a list of our own, ask for one.
        with self._lock:
            listed, tried = self._listed, self._tried.get(token)
        is_newer = listed is not None and (tried is None or tried < listed[0])
        found = listed[1] if listed is not None and is_newer else self.instances()
        alive = (each for each in found.values() if each.token == token and not each.state.is_dead)
        return min(alive, key=lambda each: each.id, default=None)

    def _run_command(self, argv: tuple[str, ...], wish: str, words: bytes, timeout_s: float) -> Completed:
        """Run the command and return how it ended. Raises the error that the command reported, or its bad end."""
        who = _shown_command(argv)
        try:
            done = run(argv, timeout_s=timeout_s, input=words, max_bytes=_MAX_BYTES, check=False)
        except Failed as failed:
            raise Retryable(f"{wish}: {failed}") from failed
        if (said := parse_refusal(done.stdout, who)) is not None:
            raise said
        if done.returncode == os.EX_TEMPFAIL or done.returncode < 0:
            raise Retryable(f"{who}: {_reason(done)}")
        if done.returncode != 0:
            raise Permanent(f"{who}: {_reason(done)}")
        if done.truncated:
            raise Retryable(f"{who} printed more than {_MAX_BYTES >> 20} MiB")
        return done


def _shown_command(argv: tuple[str, ...]) -> str:
    return f"`{show(' '.join(argv))}`"


def _reason(done: Completed) -> str:
    """Return the last line of stderr, and how the command ended."""
    last = done.error_text.splitlines()[-1:] or ["nothing on stderr"]
    how = f"killed by signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    return f"{show(last[0])} ({how})"


# The requests to a site's command and its answers. Unknown fields are ignored, everything else is checked.

VERSION = 1
_ID = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$"
_NODE = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$"
_STATES = {state.value: state for state in InstanceState}


class Trouble(Enum):
    """The values of `{"error": ...}`."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    RETRY = "retry"
    PERMANENT = "permanent"


class CommandAnswer(BaseModel):
    """An answer of a command."""

    # Unknown fields are for other versions of Steward.
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


class CommandMachine(CommandAnswer):
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


class Launched(CommandAnswer):
    """The answer of `launch`."""

    instance: CommandMachine


class Listed(CommandAnswer):
    """The answer of `list`."""

    instances: tuple[CommandMachine, ...]


class CommandRefusal(CommandAnswer):
    """The answer of a command that did not do what was asked."""

    error: Trouble
    text: str = "no reason given"


A = TypeVar("A", bound=CommandAnswer)


def request_line(action: str, **words: Any) -> bytes:
    """Return the request for the program: a JSON object and an end of line."""
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


def parse_answer(kind: type[A], text: bytes, who: str) -> A:
    """Return the command's answer. Raises Retryable, with the wrong field, if the answer is not valid."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "answer"
        said = "nothing" if not text.strip() else repr(show(text[:200].decode("utf-8", "replace")))
        raise Retryable(f"{who}: {place}: {show(first['msg'])}; it printed {said} (see docs/providers.md)") from None


def parse_refusal(text: bytes, who: str) -> PortError | None:
    """Return the error that the command reported in its answer; None if it reported none."""
    try:
        refused = CommandRefusal.model_validate_json(text)
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
