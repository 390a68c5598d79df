"""What `steward explain JOB` says of the elastic run that a job is of."""

from steward.model.ids import JobId
from steward.policy.draft import Draft
from steward.policy.elastic.explain import run_lines


def elastic_lines(id: JobId, draft: Draft) -> list[str]:
    """Of a base or a replica job; none for any other."""
    run = draft.elastic.runs.get(id)
    if run is not None:
        return run_lines(run, draft.want.elastic, draft.now)
    of = draft.elastic.run_of(id)
    if of is None:
        return []
    text = f"Replica of elastic run {of.id}: a preemptible part of it, given back when others need its nodes."
    return [text, *run_lines(of, draft.want.elastic, draft.now)[:2]]
