"""What a training loop asks and tells in an elastic run: agreed, harmless outside one, the standard library only."""

import json
import socket
from pathlib import Path

from tests.fakes.training import printed_by


def run(body: str, **env: str) -> str:
    return printed_by(f"from steward.job import elastic\n{body}", ("pydantic", "click", "torch"), **env)


def test_outside_an_elastic_run_nobody_is_asked_to_save_and_nobody_waits() -> None:
    calls = "elastic.save_and_wait(lambda: print('saved'), 1, 8)"
    asked = "print(elastic.active(), elastic.resize_wanted(1, 8), elastic.elastic_event_detected())"

    assert run(f"{asked}; {calls}") == "False False False\nsaved\n"


def test_a_rank_that_is_asked_saves_and_says_so(tmp_path: Path) -> None:
    with heard(tmp_path) as agent:
        (tmp_path / "resize-3").touch()
        body = "print(elastic.resize_wanted(7, 56)); elastic.saved(7, 56); elastic.wait_for_resize(0); "
        body += "print(elastic.resize_wanted(8, 64))"

        printed = run(body, STEWARD_ELASTIC_LOCAL=str(tmp_path), STEWARD_ELASTIC_GENERATION="3", LOCAL_WORLD_SIZE="2")

        words = [json.loads(agent.recv(4096)) for _ in range(3)]
    assert printed == "True\nFalse\n", "who waited in vain trains on and is not asked again"
    assert [(each["what"], each["step"], each["consumed"]) for each in words] == [
        ("step", 7, 56),
        ("noticed", 7, 56),
        ("saved", 7, 56),
    ]
    assert {(each["generation"], each["ranks"]) for each in words} == {(3, "2")}


def test_a_question_about_an_earlier_generation_is_not_for_this_one(tmp_path: Path) -> None:
    (tmp_path / "resize-2").touch()

    printed = run("print(elastic.resize_wanted())", STEWARD_ELASTIC_LOCAL=str(tmp_path), STEWARD_ELASTIC_GENERATION="3")

    assert printed == "False\n"


def test_a_loop_that_tells_no_step_tells_once_that_it_makes_steps(tmp_path: Path) -> None:
    """HyperPod's question has no step: without a word the run would wait five minutes before it changes its size."""
    place = {"STEWARD_ELASTIC_LOCAL": str(tmp_path), "STEWARD_ELASTIC_GENERATION": "3"}
    asks = "[elastic.elastic_event_detected() for _ in range(3)]"
    with heard(tmp_path) as agent:
        run(asks, RANK="1", **place)
        run(f"{asks}; elastic.resize_wanted(4)", RANK="0", **place)
        words = [json.loads(agent.recv(4096)) for _ in range(2)]
    assert [each["what"] for each in words] == ["started", "step"]
    assert words[0]["generation"] == 3


EVERY = """
votes = []
def agree(mine):
    votes.append((step, mine))
    return mine or step == 30
for step in range(1, 41):
    if step == 13:
        (pathlib.Path(os.environ["STEWARD_ELASTIC_LOCAL"]) / "resize-3").touch()
    if elastic.resize_wanted(step, every=10, agree=agree):
        break
print(step, votes)
"""


def test_a_loop_that_asks_each_tenth_time_votes_at_the_same_steps_on_all_ranks(tmp_path: Path) -> None:
    """The ranks vote at the tenth, twentieth step whatever they know: between them no rank is waited for."""
    place = {"STEWARD_ELASTIC_LOCAL": str(tmp_path), "STEWARD_ELASTIC_GENERATION": "3", "RANK": "1"}
    with heard(tmp_path):
        assert run("import os, pathlib" + EVERY, **place) == "20 [(10, False), (20, True)]\n"
        (tmp_path / "resize-3").unlink()
        never_asked = EVERY.replace("step == 13", "False")
        assert run("import os, pathlib" + never_asked, **place) == "30 [(10, False), (20, False), (30, False)]\n"


def test_a_step_never_waits_for_an_agent_that_does_not_listen(tmp_path: Path) -> None:
    queued = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text()) + 1
    asks = f"import time; elastic.TELL_EVERY_S = 0; [elastic.resize_wanted(step) for step in range({queued})]; "
    asks += "at = time.monotonic(); elastic.resize_wanted(7); print(time.monotonic() - at < 0.5)"
    with heard(tmp_path):
        assert run(asks, STEWARD_ELASTIC_LOCAL=str(tmp_path), STEWARD_ELASTIC_GENERATION="3", RANK="0") == "True\n"


def heard(folder: Path) -> socket.socket:
    """What torchrun's agent on the node listens to."""
    agent = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    agent.bind(str(folder / "words"))
    agent.settimeout(20)
    return agent
