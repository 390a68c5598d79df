"""Lines for people about an elastic run, and about a job that is part of one."""

from steward.model.elastic import ElasticRun, Phase
from steward.model.elastic_policy import ElasticPolicy
from steward.model.ids import JobId
from steward.model.words import ago, until
from steward.policy.draft import Draft
from steward.policy.elastic.rules import rules_of

_LAST = 8


def elastic_lines(id: JobId, draft: Draft) -> list[str]:
    """The lines about a base or a replica job; none for any other."""
    run = draft.elastic.runs.get(id)
    if run is not None:
        return run_lines(run, draft.want.elastic, draft.now)
    of = draft.elastic.run_of(id)
    if of is None:
        return []
    text = f"Replica of elastic run {of.id}: a preemptible part of it, given back when others need its nodes."
    return [text, *run_lines(of, draft.want.elastic, draft.now)[:2]]


def run_lines(run: ElasticRun, site: ElasticPolicy, now: float) -> list[str]:
    """A run's sizes over time, why it grew or did not, and what it waits for."""
    rules = rules_of(run.spec, run.base, site)
    sizes = ", ".join(map(str, rules.spec.sizes)) if rules is not None else "none"
    has = f"has {len(run.members)} nodes (sizes: {sizes})" if run.is_open else "is over"
    lines = [f"Elastic run {run.id} {has}; {run.changes} changes of size so far."]
    if run.is_open:
        lines.append(_waits_for(run, site, now))
    lines += [f"{ago(change.at, now)}: {change.why}{_took(change.at, change.done)}." for change in run.events[-_LAST:]]
    return lines


def _waits_for(run: ElasticRun, site: ElasticPolicy, now: float) -> str:
    if run.alone:
        return f"The run stays at its size: it has no coordinator ({run.alone})."
    if run.phase is Phase.WAITING:
        return (
            "The run waits for its first step with all nodes of its base. It stays at their number where its processes "
            "are not started by torchrun --rdzv-backend=steward or python -m steward.job.launch."
        )
    if run.is_changing or run.phase is Phase.FAULTED:
        return f"The run is changing its size ({run.phase.value} since {ago(run.entered, now)}): {run.why}."
    if not site.enabled or run.paused:
        return f"The run does not grow: {'a person paused it' if run.paused else 'the site does not let runs grow'}."
    if run.cool_until > now:
        return f"The run grows again {until(run.cool_until, now)} at the earliest: a change of size was made lately."
    asked = [one for one in run.replicas if one.ending is None and one.job is None]
    if asked:
        return f"The run has asked for {sum(one.nodes for one in asked)} more nodes."
    wish = f" (a person asked for {run.wish} nodes)" if run.wish is not None else ""
    return (
        "The run grows when enough idle, sound nodes are there that no waiting job needs, and growing gains more than "
        f"its pause costs{wish}."
    )


def _took(at: float, done: float | None) -> str:
    return f" (first step {done - at:.1f} s later)" if done is not None and done > at else ""
