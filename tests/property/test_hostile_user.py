"""Whatever an ordinary user can produce leaves all others' verdicts, connections, nodes and jobs as they were: lines,
files, words of his own coordinator, fields of his jobs, his environment, and the connections that he opens.

HOSTILE_EXAMPLES says how many examples each property looks at, PROPERTY_CPU_S the time that it may take; with pytest's
--timeout=0, for 20,000 take an hour of a core.
"""

import contextlib
import json
import os
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steward.adapters.node.job_look import parse
from steward.adapters.slurm import records, text_jobs
from steward.adapters.slurm.text_nodes import Odd
from steward.adapters.wire.deep_messages import DeepLine, deep_frame, deep_of
from steward.adapters.wire.elastic_messages import elastic_word_frame, elastic_word_of
from steward.adapters.wire.frames import MAX_FRAME, Frame, Malformed, pack, strict_json, unpack, why_unsendable
from steward.adapters.wire.handshake import _hello_frame, _hello_of
from steward.adapters.wire.job_messages import ask_frame, ask_of, exits_frame, exits_of, progress_frame, progress_of
from steward.adapters.wire.messages import opted_frame, opted_list
from steward.adapters.wire.shimline import AskLine, BadLine, ExitLine, OptedLine, parse_request
from steward.model.action import AnswerAsk, CheckNow
from steward.model.agent_action import Action
from steward.model.ask import Ask, AskKind, OptedIn
from steward.model.deep import DeepReport
from steward.model.elastic_spec import ElasticWords
from steward.model.ids import AskId, JobId, NodeName
from steward.model.job_report import Progress, TaskExit
from steward.model.resume_mode import ResumeMode
from steward.model.witness import Witness
from tests.builders.picture import Picture, a_cluster, n
from tests.fakes.hub_bench import hello
from tests.property.test_slurm_text import FORMAT, as_line, as_text, jobs

EXAMPLES = settings(max_examples=int(os.environ.get("HOSTILE_EXAMPLES", "100")))
N1, EVIL = NodeName("n1"), 1666

# The grammar of the shim's line, with words within and beyond what it allows.

whole = st.sampled_from(("0", "1", "7", "65536", "1000001", str(2**32 - 1), str(2**32), str(2**63), "-1", "1e3", "nan"))
numbers = whole | st.integers(-1, 2**65).map(str)
modes = st.sampled_from(("0", "1", "any:1", "any:1000", "any:0", "1,max=1001", "1,age=inf", "any:5,codes=1:2", "1,"))
steps = st.sampled_from(("batch", "0", "4294967290", "x" * 32, "x" * 33, "..", "%00", "a b"))
words = st.text('nai0123456789=:,%.-_/ \\"', max_size=30) | st.text(max_size=12)
FIELDS: dict[str, st.SearchStrategy[str]] = {
    **dict.fromkeys(("job", "uid", "restart", "attempt", "status", "task", "size", "batch"), numbers),
    "mode": modes | words,
    "step": steps | numbers,
    "kind": st.sampled_from(("step", "batch", "other")),
    "elastic": st.sampled_from(("4", "4096:1", "1", "2,grace=nan", "4,batch=999999")) | words,
    **dict.fromkeys(("out", "run", "here", "check", "node", "text", "value", "seconds", "outcome", "unit"), words),
    **dict.fromkeys(("replay", "script", "done", "progress", "partner"), words),
}
VERBS = {
    "opted": ("job", "uid", "mode", "restart"),
    "ask": ("kind", "job", "step", "uid", "mode", "attempt", "restart", "status"),
    "exit": ("job", "step", "restart", "task", "status"),
    "log": ("job", "restart", "size", "out"),
    "deep": ("run", "here", "check", "node", "outcome", "value", "seconds"),
    "verdict": (),
}


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    verb = draw(st.sampled_from(sorted(VERBS)))
    keys = [*VERBS[verb], *draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=2, unique=True))]
    fields = " ".join(f"{key}={draw(FIELDS[key])}" for key in dict.fromkeys(keys))
    return f"steward/1 {verb} {fields}\n".encode("utf-8", "surrogatepass")


def through(frame: Frame) -> Frame:
    """The frame as the head gets it, after the agent could send it."""
    assert not why_unsendable(frame)
    return unpack(pack(frame)[4:])


@EXAMPLES
@given(lines() | st.binary(max_size=1100).map(lambda data: data + b"\n"))
def test_what_an_agent_takes_from_a_user_the_head_takes_from_the_agent(line: bytes) -> None:
    """Two validators of one value drift: then every hello with that value is refused, and with it all of the node."""
    try:
        request = parse_request(line)
    except BadLine:
        return
    match request:
        case OptedLine():
            words = (request.job, request.uid, request.mode, request.restart)
            opted = OptedIn(
                job=words[0], uid=words[1], mode=words[2], restart=words[3], at=1e9, elastic=request.elastic
            )
            assert opted_list(through(opted_frame([opted]))) == (opted,)
            greeting = _hello_frame(replace(hello(), opted=(opted,)), "0" * 32)
            assert _hello_of(through(greeting)).opted == (opted,)
        case AskLine():
            parts = [
                "kind",
                "job",
                "step",
                "uid",
                "mode",
                "attempt",
                "restart",
                "status",
                "replay",
                "script_gone",
                "script_unbegun",
            ]
            parts.append("script_unbegun")
            ask = Ask(id=AskId("n1-1"), node=N1, at=1e9, **{name: getattr(request, name) for name in parts})
            assert ask_of(through(ask_frame(ask)), N1) == ask
        case ExitLine():
            parts = ["job", "restart", "step", "task", "status"]
            ended = TaskExit(node=N1, at=1.0, **{name: getattr(request, name) for name in parts})
            assert exits_of(through(exits_frame((ended,), 1.0)), N1, 1.0) == (ended,)
        case DeepLine(measure=measure) if measure is not None and request.node == N1:
            report = DeepReport(run=request.run, node=N1, measures=(measure,), at=1.0)
            assert len(deep_of(through(deep_frame(report)), N1).measures) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
names = st.lists(st.sampled_from(("n1", "n" * 64, "n" * 65, "", "n\n1", "n1")) | st.text(max_size=6), max_size=5)
told = st.fixed_dictionaries(
    {
        "state": st.sampled_from(("running", "forming", "ended", "x")),
        "generation": st.integers(-1, 2**40) | st.floats(),
    },
    optional={
        **dict.fromkeys(("members", "joined", "leaving"), names | json_values),
        **dict.fromkeys(("step", "saved_step", "consumed"), st.integers(-1, 2**70) | st.floats() | st.none()),
        "timings": st.dictionaries(st.sampled_from(("saved_s", "up_s")), st.floats() | json_values) | json_values,
        **dict.fromkeys(("why", "failed", "alone", "run", "uid", "t"), json_values),
    },
)
long_names = st.integers(1, 4096).map(lambda count: [f"n{number:05d}abcdefghijkl" for number in range(count)])


@EXAMPLES
@given(told, st.none() | long_names)
def test_a_word_of_a_users_coordinator_is_passed_on_or_refused(word: dict[str, Any], many: list[str] | None) -> None:
    if many is not None:
        word = word | dict.fromkeys(("members", "joined", "leaving"), many)
    ours = {"run": 7, "restart": 0, "uid": EVIL, "spec": "4", "failed": [], "alone": ""}
    try:
        heard = elastic_word_of({**strict_json(json.dumps(word)), **ours}, N1, 0.0)
    except (Malformed, ValueError):
        return
    if why_unsendable(elastic_word_frame(heard)):
        assert len(json.dumps(word)) > MAX_FRAME // 4, "only what is long is refused for its length"
        return
    assert elastic_word_of(through(elastic_word_frame(heard)), N1, 0.0) == heard


@EXAMPLES
@given(
    st.binary(max_size=300) | json_values.map(lambda value: json.dumps(value).encode()) | told.map(str).map(str.encode)
)
def test_what_a_job_writes_into_its_file_hides_no_other_job(content: bytes) -> None:
    seen = parse(content, 1e9)
    evil = Progress(job=JobId(7), restart=0, node=N1)
    if seen is not None:
        evil = replace(
            evil, step=seen.step, checkpoint=seen.checkpoint, checkpoint_step=seen.checkpoint_step, first=seen.first
        )
    other = Progress(job=JobId(8), restart=0, node=N1, step=3)
    assert [one.job for one in progress_of(through(progress_frame((evil, other), 1e9)), N1, 1e9)] == [7, 8]


@EXAMPLES
@given(st.text(max_size=300) | modes | words)
def test_an_environment_is_read_or_refused(value: str) -> None:
    for read in (ResumeMode.parse, ElasticWords.parse):
        with contextlib.suppress(ValueError):
            read(value)


# Fields of jobs, in each reader of Slurm.

lists = st.sampled_from(
    ("n1,", "n1,,n2", "n1 n2", "n[1-]", ",", " ", "n[", "n1;n2", "n[1-99999999]", "n[3-1]", "(null)")
)
excluded = lists | st.text("n12,-[] \t", max_size=12) | words
free = st.sampled_from(("(null)", "N/A", "", "x JobState=FAILED", "a\n7|7|n9", "|" * 40, "\u202e\x1b[2J")) | words
typed = st.fixed_dictionaries({"excluded_nodes": excluded, "name": free, "comment": free})


@EXAMPLES
@given(st.lists(jobs(), unique_by=lambda job: job["job_id"], min_size=2, max_size=4), typed)
def test_what_a_user_types_into_his_job_hides_no_other_job(told: list[dict[str, Any]], evil: dict[str, str]) -> None:
    evil = {key: text.encode("utf-8", "replace").decode().replace("\0", "") for key, text in evil.items()}
    mine, others = told[0] | evil, told[1:]
    known = {job.id: job for job in map(records.job_of, map(as_line, others))}
    found = {job.id: job for job in map(records.job_of, map(as_line, [mine, *others]))}
    assert found.keys() == {mine["job_id"], *known}
    assert {id: job for id, job in found.items() if id in known} == known

    texts = [as_text(job) for job in (mine, *others)]
    short = text_jobs.short("".join(line for _, line in texts))
    read = {}
    for record in FORMAT.cut("".join(long for long, _ in texts)):
        id = text_jobs.id_of(record)
        with contextlib.suppress(Odd):
            read[id] = text_jobs.job(record, short.excluded[id], short.times[id])
    assert {id: job for id, job in read.items() if id in known} == known


# What is decided.

claims = st.builds(
    OptedIn,
    job=st.sampled_from((7, 8, 9, 4_000_000)).map(JobId),
    uid=st.just(EVIL),
    mode=st.sampled_from(("0", "1", "any:1000", "1,max=0")).map(ResumeMode.parse),
    restart=st.sampled_from((0, 1, 10**6)),
    at=st.just(0.0),
    told_by=st.sampled_from(("n1", "n4")).map(lambda name: frozenset({NodeName(name)})),
)
questions = st.tuples(
    st.sampled_from(AskKind),
    st.sampled_from((7, 8, 4_000_000)),
    st.sampled_from(("n1", "n4")),
    st.sampled_from(("0", "batch", "x1", "x2")),
    st.integers(0, 65535),
)
ways = st.sampled_from(("ended", "sent away", "untouched"))


def others_site() -> Picture:
    """Job 7 of another user on n1 to n3, and job 8 of one that did not opt in."""
    return a_cluster().job().opted_in().job(8, on=("n4",)).then()


def about_others(actions: tuple[Action, ...], hostile: frozenset[AskId]) -> list[Action]:
    """Without answers to the hostile user."""
    return [one for one in actions if not (isinstance(one, AnswerAsk) and one.ask in hostile)]


@EXAMPLES
@given(st.lists(claims, max_size=4), st.lists(questions, max_size=6), st.lists(st.floats(0.1, 40.0), max_size=4))
def test_what_a_user_says_of_others_jobs_changes_nothing_for_them(
    words: list[OptedIn], asks: list[tuple[AskKind, int, str, str, int]], waits: list[float]
) -> None:
    plain = others_site()
    evil = plain.see(opted_in=(*plain.seen.opted_in, *words))
    for number, (kind, job, node, step, status) in enumerate(asks):
        evil = evil.ask(kind, id=job, node=node, uid=EVIL, step=step, status=status, **{"restart": number % 2})
    hostile = frozenset(ask.id for ask in evil.seen.asks)
    for wait in waits:
        assert about_others(evil.plan().actions, hostile) == list(plain.plan().actions)
        ours, theirs = plain.plan().memory, evil.plan().memory
        assert theirs.jobs.get(JobId(7)) == ours.jobs.get(JobId(7))
        assert (theirs.cases, theirs.nodes, theirs.breakers) == (ours.cases, ours.nodes, ours.breakers)
        told = [event for event in evil.plan().events if event.kind != "ask.foreign"]
        assert told == list(plain.plan().events)
        plain, evil = plain.then(wait), evil.then(wait)


@EXAMPLES
@given(ways, st.sampled_from((Witness.ALIVE, Witness.UNANSWERED)), st.lists(st.floats(0.1, 14.0), max_size=5))
def test_a_user_who_fills_slurmds_port_and_makes_its_agent_go_away_takes_no_node_away(
    how: str, port: Witness, waits: list[float]
) -> None:
    """He can make the port give no answer. An agent that was made to hang up, or to be hung up on, is no silent one."""
    picture = others_site()
    if how != "untouched":
        picture = picture.agent_lost("n2", ago_s=0.0)
    for wait in [0.1, *waits]:
        picture = picture.then(wait)
        if how == "sent away":
            picture = picture.agent("n2", dialled_at=picture.now)
        picture = picture.witnessed("n2", port)
        touching = [one for one in picture.plan().actions if not isinstance(one, CheckNow)]
        assert not [one for one in touching if type(one).__name__ in ("DownNode", "DrainNode", "LaunchInstance")]
    assert picture.seen.nodes[n("n2")].is_drain is False
