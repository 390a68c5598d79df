"""Whatever happens to an elastic run, a generation is one agreed set of nodes, and nobody waits without end."""

from hypothesis import given
from hypothesis import strategies as st

from steward.elastic.pace import PATIENCE_S, START_S
from tests.builders.elastic_rounds import Line, Story

NODES = [f"n{number}" for number in range(1, 6)]
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["come", "lost", "notice", "save", "order", "cut", "failed", "done", "step", "pass", "anew", "grow"]
        ),
        st.integers(0, 4),
        st.integers(1, 40),
    ),
    max_size=60,
)


@given(EVENTS)
def test_whatever_happens_a_generation_has_one_set_of_members_and_an_allowed_size(
    events: list[tuple[str, int, int]],
) -> None:
    story = Story()
    for what, number, seconds in events:
        if what == "anew":
            story.begin_anew()
        else:
            happen(story, what, NODES[number], seconds)
    story.pass_(PATIENCE_S)
    story.pass_(START_S)

    by_generation: dict[int, list[Line]] = {}
    for node, form in story.forms:
        assert form["members"][form["rank"]] == node
        by_generation.setdefault(form["generation"], []).append(form)
    for forms in by_generation.values():
        assert len({tuple(form["members"]) for form in forms}) == 1
        assert sorted(form["rank"] for form in forms) == list(range(len(forms))), "each rank is given once"
        assert len(forms) in (2, 3, 4)
        assert set(NODES[:2]) & set(forms[0]["members"]), "replicas alone are no run"
    assert list(by_generation) == sorted(by_generation), "generations only rise"
    assert story.run.state != "saving", "no save is waited for without end"


def happen(story: Story, what: str, node: str, seconds: int) -> None:
    run, is_here = story.run, node in story.run.peers
    if what == "come" and not is_here:
        story.come(node, role="base" if node in NODES[:2] else "replica")
    elif what in ("order", "grow"):
        story.order(*NODES[: max(2, seconds % 5)], grace_s=seconds, patient=what == "grow")
    elif what == "cut":
        story.order(*NODES[: max(2, seconds % 5)], grace_s=0)
    elif what == "pass":
        story.pass_(seconds)
    elif is_here and what == "lost":
        run.lost(node, story.now)
    elif is_here and what == "notice":
        run.notice(node, story.now)
    elif is_here and what in ("failed", "done") and not run.peers[node].is_waiting:
        run.handle_end(node, what, story.now)
    elif is_here and what == "save":
        story.save(node)
    elif is_here and what == "step":
        story.say(node, "step")
    story.hear()
