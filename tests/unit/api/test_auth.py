"""Whose a MUNGE credential is, and for which request, at the head of which cluster."""

import pytest

from steward.api.auth import Gatekeeper, Refused
from steward.client import Client, HeadError
from steward.model.access import for_cluster, payload
from tests.fakes.api_bench import ApiBench
from tests.fakes.munge import FakeMunge, FakeMunged

CARRIES = payload("POST", "/v1/pause", b"{}")


def admitted(made_for: str, head: str) -> str:
    """Both clusters have one MUNGE key, and each host its own munged."""
    munge = FakeMunge(FakeMunged(), 0)
    credential = munge.encode(for_cluster(CARRIES, made_for))
    return Gatekeeper(munge, frozenset({0}), head).admit(f"MUNGE {credential}", "POST", "/v1/pause", b"{}")


@pytest.mark.parametrize("head", ["b", "a b", ""])
def test_what_was_proved_to_one_clusters_head_is_refused_by_anothers(head: str) -> None:
    with pytest.raises(Refused, match=r"another request's cluster: is cluster\.name"):
        admitted("a", head)


@pytest.mark.parametrize("made_for", ["a", ""])
def test_a_proof_for_this_cluster_or_for_none_in_particular_is_good(made_for: str) -> None:
    """The second is what scripts made before there was a name in it."""
    assert admitted(made_for, "a") == "root"


def test_our_client_names_the_cluster_that_it_was_given(api: ApiBench) -> None:
    client = Client(api.url, FakeMunge(api.munged, 0).encode, cluster="another")
    with pytest.raises(HeadError, match="another request's cluster"):
        client.pause("why")
