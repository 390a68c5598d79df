"""Trials of site checks: a new version of a check only reports until it has shown that it is sane.

Checks that a new head finds are tried as well: a new head only reports at first anyway, and the trials are over when
the site lets it act.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from steward.model.events import Level
from steward.model.health import Trial, TrialState
from steward.model.ids import NodeName
from steward.policy.draft import Draft
from steward.policy.traits import Versions
from steward.policy.trust import KEPT, KEPT_IN_ALL, SITE, trial_key

TRIAL_S = 4 * 3600.0
"""How long a trial goes on after enough nodes had results."""
MORE_FAILING = 0.05
"""The share of the nodes that may fail in a trial beyond that of the version before."""
_FORGOTTEN_FIRST = (TrialState.RUNNING, TrialState.ARMED, TrialState.REFUSED)


@dataclass(slots=True)
class _Results:
    """The nodes on which one version of a check passed or failed."""

    check: str
    version: str
    passed: set[NodeName] = field(default_factory=set)
    failed: set[NodeName] = field(default_factory=set)


def follow_trials(draft: Draft) -> None:
    """Begin, continue and decide the trial of every version that agents report."""
    room: _Room | None = None
    for key, results in sorted(_results(draft).items()):
        trial = draft.trials.get(key)
        if trial is None:
            room = room or _Room(draft)
            if not room.make(results.check):
                continue
            trial = _new_trial(results, draft)
        if trial.state is TrialState.RUNNING:
            trial = _continued(trial, results, draft)
        if draft.trials.get(key) != trial:
            draft.trials[key] = trial


def _results(draft: Draft) -> dict[str, _Results]:
    """Return the versions that are new or on trial, by key, with the nodes that have results in this picture."""
    found: dict[str, _Results] = {}
    agents = draft.ground.agents
    for versions in agents.kinds(Versions):
        for check, version in versions.known:
            if not check.startswith(SITE):
                continue
            key = trial_key(check, version)
            trial = draft.trials.get(key)
            if trial is None or trial.state is TrialState.RUNNING:
                mine = found.setdefault(key, _Results(check=check, version=version))
                _add_results(mine, agents.having(versions), draft)
    return found


def _add_results(results: _Results, nodes: Iterable[NodeName], draft: Draft) -> None:
    """Add the results of these nodes."""
    for node in nodes:
        view = draft.seen.agents[node]
        if results.check in view.passed:
            results.passed.add(node)
        elif any(f.check == results.check and f.is_bad for f in view.findings):
            results.failed.add(node)


def _new_trial(results: _Results, draft: Draft) -> Trial:
    """Return a new trial of a version, or an armed one if trials are off."""
    before = _last_armed(results.check, draft)
    trial = Trial(check=results.check, version=results.version, since=draft.now)
    if not draft.want.health.canary_node_count:
        draft.wake(draft.now + 1.0)  # findings of the version may have been muted until there was room for its trial
        return replace(trial, state=TrialState.ARMED, text="armed without a trial (health.canary_node_count = 0)")
    what = "is new" if before is None else "was changed"
    until = f"until {_enough(draft)} nodes had results for {TRIAL_S / 3600:.3g} h"
    draft.tell("check.trial", f"check {results.check} {what}: it only reports {until}")
    return replace(trial, previous_share=before.share if before else None, text="no results yet")


def _last_armed(check: str, draft: Draft) -> Trial | None:
    """Return the trial of the version of this check that was armed last; None if there is none."""
    armed = [t for t in draft.trials.values() if t.check == check and t.state is TrialState.ARMED]
    return max(armed, key=_age, default=None)


def _continued(trial: Trial, results: _Results, draft: Draft) -> Trial:
    """Return the trial with new results; decide it when enough nodes had results for long enough."""
    tried, failed = trial.nodes_tried | results.passed | results.failed, trial.nodes_failed | results.failed
    if (tried, failed) != (trial.nodes_tried, trial.nodes_failed):
        trial = replace(
            trial, nodes_tried=tried, nodes_failed=failed, text=_numbers(len(failed), len(tried), trial, draft)
        )
    if trial.enough_at is None and len(tried) >= _enough(draft):
        trial = replace(trial, enough_at=draft.now)
    if trial.enough_at is None:
        return trial
    due = trial.enough_at + TRIAL_S
    draft.wake(due)
    return trial if draft.now < due else _decided(trial, draft)


def _decided(trial: Trial, draft: Draft) -> Trial:
    """Return the trial armed if few enough nodes failed, else refused."""
    share = len(trial.nodes_failed) / len(trial.nodes_tried)
    is_sane = share <= _bound(trial, draft)
    state = TrialState.ARMED if is_sane else TrialState.REFUSED
    if is_sane:
        draft.tell("check.armed", f"check {trial.check} may take nodes out from now on: {trial.text}")
        draft.wake(draft.now + 1.0)
    else:
        remedy = f"it goes on reporting only until `steward check arm {trial.check}`, or until it is changed"
        draft.tell("check.refused", f"check {trial.check} fails too often: {trial.text}; {remedy}", level=Level.ERROR)
    return replace(trial, state=state, share=share, nodes_tried=frozenset(), nodes_failed=frozenset())


def _enough(draft: Draft) -> int:
    """Return how many nodes must have had results."""
    return min(draft.want.health.canary_node_count, max(1, len(draft.seen.nodes)))


def _bound(trial: Trial, draft: Draft) -> float:
    """Return the share of failing nodes up to which a version is sane."""
    return (trial.previous_share or 0.0) + MORE_FAILING


def _numbers(failed: int, tried: int, trial: Trial, draft: Draft) -> str:
    """Return the numbers of a trial for people."""
    before = (
        "it has no previous version"
        if trial.previous_share is None
        else f"{trial.previous_share:.1%} with its previous version"
    )
    return f"{failed} of {tried} nodes failed ({failed / tried:.1%}; at most {_bound(trial, draft):.1%}, {before})"


class _Room:
    """The room in memory for trials of new versions.

    A version that an agent reports, or that was armed last, is never forgotten to make room.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        # edits on one node must not disarm the version of all others
        reported = {one for versions in draft.ground.agents.kinds(Versions) for one in versions.known}
        by_age = sorted(draft.trials.values(), key=_age)
        armed = {trial.check: trial for trial in by_age if trial.state is TrialState.ARMED}
        unused = (one for one in by_age if (one.check, one.version) not in reported and one != armed.get(one.check))
        self._unused = sorted(unused, key=lambda trial: _FORGOTTEN_FIRST.index(trial.state))
        self._full: set[str] = set()

    def make(self, check: str) -> bool:
        """Make room for one more version of a check by forgetting an old one. Return whether there is room."""
        if check in self._full:
            return False
        has_most = sum(one.check == check for one in self._draft.trials.values()) >= KEPT
        if not has_most and len(self._draft.trials) < KEPT_IN_ALL:
            return True
        old = next((one for one in self._unused if one.check == check or not has_most), None)
        if old is None:
            self._full.add(check)
            _tell_full(check if has_most else "", self._draft)
            return False
        self._unused.remove(old)
        del self._draft.trials[trial_key(old.check, old.version)]
        return True


def _age(trial: Trial) -> tuple[float, str]:
    """Return the sort key of a trial, the oldest first."""
    return trial.since, trial.version


def _tell_full(check: str, draft: Draft) -> None:
    """Say once that there is no room for more versions."""
    what = f"check {check} has {KEPT} versions" if check else f"the site's checks have {KEPT_IN_ALL} versions"
    then = "others only report" + (", without a trial" if draft.want.health.canary_node_count else "")
    draft.tell("check.trial", f"{what} in use: {then}", once=f"trials:full:{check}", level=Level.WARNING)
