"""Another size for an elastic run, or a pause of its growth."""

from dataclasses import replace

from steward.model.ids import JobId
from steward.model.order import Answer, ChangeRun, Refusal, RefusalKind
from steward.policy.elastic.rules import rules_of
from steward.policy.orders.desk import Desk
from steward.policy.orders.refuse import invalid


def change_run(order: ChangeRun, desk: Desk) -> Answer:
    """The change is carried out by the plan of this very turn. Raises Refusal for a run or a size that there is not."""
    run = desk.elastic.get(JobId(order.run))
    if run is None or not run.is_open:
        raise Refusal(RefusalKind.NOT_FOUND, f"There is no elastic run {order.run}: `steward elastic list` shows them.")
    rules = rules_of(run.spec, run.base, desk.want.elastic)
    if rules is None:
        raise invalid(f"Run {run.id} has no sizes.")
    words = list[str]()
    if order.size is not None:
        if order.size and order.size not in rules.spec.sizes:
            known = ", ".join(map(str, rules.spec.sizes))
            raise invalid(f"Run {run.id} has the sizes {known}; not {order.size}.")
        run = replace(run, wish=order.size or None)
        words.append(f"at most {order.size} nodes" if order.size else "any of its sizes")
    if order.paused is not None:
        run = replace(run, paused=order.paused)
        words.append("no growth" if order.paused else "growth again")
    desk.elastic[run.id] = run
    desk.tell("elastic.asked", f"{desk.who} asked elastic run {run.id} for {' and '.join(words) or 'nothing'}")
    return Answer()
