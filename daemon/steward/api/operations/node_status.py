"""The API's word for what a node is at, and the sentence that goes with it."""

from datetime import UTC, datetime

from steward.api.operations.sight import Json, Sight
from steward.model.case import Case, Step
from steward.model.deep import DeepRun
from steward.model.group import Group, GroupStatus
from steward.model.slot import Hitch, Purpose, SlotRecord, SlotStep

_LEAVING = (SlotStep.DRAIN, SlotStep.BACKUP, SlotStep.END)
_MAX_MESSAGE = 1024


def status_of(slot: SlotRecord, group: Group, sight: Sight) -> Json:
    """ClusterInstanceStatusDetails."""
    case = sight.cases.get(slot.node) if slot.step is SlotStep.SERVING else None
    run = sight.deeps.get(slot.node)
    message = _deep(run) if run else _repair(case) if case else _trouble(slot)
    return {"Status": _word(slot, group, case, run), "Message": message[:_MAX_MESSAGE] or None}


def _word(slot: SlotRecord, group: Group, case: Case | None, run: DeepRun | None) -> str:
    if run is not None and not slot.is_leaving:
        return "DeepHealthCheckInProgress"
    if slot.step is SlotStep.SERVING:
        return _word_of_repair(case)
    if slot.is_leaving or (slot.step in _LEAVING and slot.purpose is not Purpose.RENEW):
        return "ShuttingDown"
    if slot.instance is not None and slot.hitch is not Hitch.NONE:
        return "Failure"
    if slot.purpose is Purpose.RENEW or (slot.has_served and group.status is GroupStatus.SYSTEM_UPDATING):
        return "SystemUpdating"
    if slot.step in (SlotStep.VERIFY, SlotStep.RETURN) and group.on_start_checks:
        return "DeepHealthCheckInProgress"
    return "Pending"


def _word_of_repair(case: Case | None) -> str:
    """A node that is only suspected still runs; one that waits for a person has failed."""
    if case is None or case.step is Step.SUSPECT:
        return "Running"
    return "Failure" if case.step is Step.HELD else "Pending"


def _repair(case: Case) -> str:
    at = f"waits for `steward approve {case.number}`" if case.waits_for_yes else case.step.value
    return f"Under repair ({at}): {case.why.text}"


def _deep(run: DeepRun) -> str:
    return f"Deep check {run.id} ({run.cause.value}) is {run.state.value}"


def _trouble(slot: SlotRecord) -> str:
    """What failed last, and when it is tried again; a node in service keeps no old failure."""
    if slot.hitch is Hitch.NONE or slot.step is SlotStep.SERVING:
        return ""
    again = f" Next try at {_clock(slot.next_try)}." if slot.next_try else ""
    return f"{slot.trouble or slot.hitch.value}.{again}"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
