"""What every ProviderPort promises; a test class inherits it and brings the fixture `provider`.

Of what is listed only the launched instances are looked at: a provider of fixed machines lists idle ones as well.
"""

import pytest

from steward.model.ids import InstanceId, NodeName
from steward.model.instance import InstanceState, Slot
from steward.ports import Permanent, ProviderPort

SLOT = Slot(node=NodeName("n1"), group="main")
OTHER = Slot(node=NodeName("n2"), group="main")


def launched(provider: ProviderPort) -> list[InstanceId]:
    """What was launched with a token and is still there."""
    return [i.id for i in provider.instances().values() if i.token and i.state is not InstanceState.GONE]


class ProviderContract:
    def test_a_launched_instance_is_listed_with_its_node_and_token(self, provider: ProviderPort) -> None:
        made = provider.launch(SLOT, "t1")
        listed = provider.instances()[made.id]
        assert (listed.node, listed.token) == ("n1", "t1")
        assert listed.state in (InstanceState.PENDING, InstanceState.RUNNING)

    def test_the_same_token_returns_the_same_instance(self, provider: ProviderPort) -> None:
        assert provider.launch(SLOT, "t1").id == provider.launch(SLOT, "t1").id
        assert len(launched(provider)) == 1

    def test_instances_of_other_slots_are_others(self, provider: ProviderPort) -> None:
        assert provider.launch(SLOT, "t1").id != provider.launch(OTHER, "t2").id

    def test_a_terminated_instance_is_not_running_any_more(self, provider: ProviderPort) -> None:
        made = provider.launch(SLOT, "t1")
        provider.terminate(made.id)
        left = provider.instances().get(made.id)
        assert left is None or left.state is InstanceState.GONE

    def test_terminating_what_is_gone_or_never_was_is_success(self, provider: ProviderPort) -> None:
        made = provider.launch(SLOT, "t1")
        provider.terminate(made.id)
        provider.terminate(made.id)
        provider.terminate(InstanceId("never-was"))

    def test_after_termination_the_slot_gets_a_new_instance(self, provider: ProviderPort) -> None:
        old = provider.launch(SLOT, "t1")
        provider.terminate(old.id)
        new = provider.launch(SLOT, "t2")
        assert new.id != old.id
        assert launched(provider) == [new.id]

    def test_a_reboot_keeps_the_instance(self, provider: ProviderPort) -> None:
        made = provider.launch(SLOT, "t1")
        provider.reboot(made.id, "r1")
        assert provider.instances()[made.id].state in (InstanceState.PENDING, InstanceState.RUNNING)

    def test_rebooting_what_never_was_will_never_work(self, provider: ProviderPort) -> None:
        with pytest.raises(Permanent):
            provider.reboot(InstanceId("never-was"), "r1")

    def test_it_describes_itself_in_one_line(self, provider: ProviderPort) -> None:
        assert len(provider.describe().splitlines()) == 1
