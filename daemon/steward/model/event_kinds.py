"""The kinds of events, for the settings and options that choose among them by the beginning of a kind."""

import difflib
from enum import Enum

from steward.model.case import CaseStep
from steward.model.deep import DeepResult, DeepState
from steward.model.order import NodeWish
from steward.model.slot import SlotStep

_WORDS = {
    "agent": "clock conflict moved refused twice twins",
    "ask": "foreign",
    "breaker": "closed half_open reset tripped",
    "case": "approved asked one_user opened refused sign waiting withheld",
    "check": "armed refused trial",
    "cluster": "created deleted deleting status tags updated",
    "deep": "alone asked suspect",
    "elastic": "alone asked asks begun called_off late lost mute no_use over queued refused size slow_save steps "
    "unanswered unfit unsaved",
    "gate": "closed foreign opened reserved yielded",
    "group": "deleted grown hot_spares idle minimum_reached no_names rollback",
    "head": "decides examined handed_over leads paused resumed second standstill",
    "health": "asked",
    "incident": "opened over",
    "instance": "foreign interrupted late orphan",
    "job": "array_slot backoff begins_later budget cleans_up decided elsewhere ended first hang hang_left hang_over "
    "held hot_spare keep keep_refused keep_released let_go opted_in overturned parts requeued resumed "
    "rule slow time_given_back unbegun unseen",
    "node": "cleared fault forgotten gres_leak launches near_miss orphan slurm_reason suspect",
    "nodes": "deleted",
    "notify": "failed test unsure",
    "quota": "account_stays by_hand called_off changed created deleted evicted evicting field_back frozen late refused "
    "scheduler tags trouble unknown_class",
    "rollout": "back batch begun ordered over",
    "scheduler": "tags",
    "slot": "again gone refused restore_failed",
    "spare": "release",
    "store": "damaged replaced unreadable",
}
_STEPS: tuple[tuple[str, type[Enum]], ...] = (
    ("case", CaseStep),
    ("deep", DeepState),
    ("deep", DeepResult),
    ("node", NodeWish),
    ("slot", SlotStep),
)
"""Subjects with an event for each step, state or wish."""
CALLS = "api."
"""The beginning of the kinds `api.CreateCluster`, ...: one for each operation that changes something."""
KINDS = frozenset(
    [f"{subject}.{word}" for subject, words in _WORDS.items() for word in words.split()]
    + [f"{subject}.{step.value.lower()}" for subject, steps in _STEPS for step in steps]
)


def is_a_beginning(text: str) -> bool:
    """Return whether an event's kind begins with the text."""
    return text.startswith(CALLS) or any(kind.startswith(text) for kind in (CALLS, *KINDS))


def nearest(text: str) -> str:
    """Return the subject or kind that the text was probably meant to be."""
    subjects = sorted({f"{kind.partition('.')[0]}." for kind in (CALLS, *KINDS)})
    close = difflib.get_close_matches(text, [*subjects, *sorted(KINDS)], n=1, cutoff=0.5)
    return f"{close[0]}, or another beginning" if close else f"one that begins with {', '.join(subjects)}"
