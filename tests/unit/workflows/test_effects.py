"""The table from actions to calls of ports."""

from typing import cast

import pytest

from steward.model.action import MoveJob, SetQos
from steward.model.agent_action import Action
from steward.model.ids import JobId, Key
from steward.model.why import Why
from steward.ports import Permanent, SlurmPort
from steward.workflows.apply import batches
from steward.workflows.effects import EFFECTS, Ports, take_effect
from tests.builders.actions import KINDS
from tests.builders.picture import a_cluster

SEEN = a_cluster().seen
WHY = Why(rule="quota.cap", text="a test", evidence=("a test",))


class Accounts:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def set_qos(self, action: SetQos) -> None:
        self.told.append(action)


def ports(accounts: Accounts | None) -> Ports:
    there = cast(SlurmPort, object())
    return Ports(slurm=there, provider=None, agents=there, witness=there, site=there, accounting=accounts)  # type: ignore[arg-type]


def set_qos(name: str = "stw-red-g") -> SetQos:
    return SetQos(key=Key(f"qos:{name}"), why=WHY, qos=name, caps=(("gres/gpu", 2),))


def test_every_action_has_one_row() -> None:
    assert set(EFFECTS) == set(KINDS)


def test_a_limit_goes_to_the_accounting_port() -> None:
    accounts = Accounts()
    take_effect(ports(accounts), (set_qos(),), SEEN)
    assert accounts.told == [set_qos()]


def test_where_slurm_has_no_accounting_a_limit_is_refused_in_words() -> None:
    with pytest.raises(Permanent, match="no quota can be kept"):
        take_effect(ports(None), (set_qos(),), SEEN)


def test_limits_and_moves_keep_their_order() -> None:
    move = MoveJob(key=Key("move:7"), why=WHY, job=JobId(7), qos=("stw-red-b",))
    actions: list[Action] = [set_qos("stw-red-g"), move, set_qos("stw-red-b")]
    assert batches(actions) == [(action,) for action in actions]
