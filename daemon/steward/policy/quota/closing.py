"""End a quota: close its QOS to new jobs, move waiting jobs to another QOS, and delete the QOS once they are empty."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from steward.model.accounting import ACCOUNT_MARK, QOS_PREFIX, Accounting, Association, borrowed_qos, guaranteed_qos
from steward.model.action import DropQos, DropTeam, MoveJob, SetTeam
from steward.model.events import Level
from steward.model.ids import Key
from steward.model.job import Job
from steward.model.port_error import is_refusal, text_of_error
from steward.model.quota import ComputeQuota, QuotaStatus
from steward.model.why import Why
from steward.policy.draft import Draft
from steward.policy.quota.edits import drop_key, edit_key, forget, is_coming, remember
from steward.policy.quota.elsewhere import is_ours
from steward.policy.quota.limits import remedy_for, users_naming, users_with_default
from steward.policy.quota.marks import release_all
from steward.policy.quota.turn import run_of

RETRY_S = 5.0
LEAVING_S = 120.0
"""An empty account of ours may take this long to be deleted; then it stays, and a warning says so."""
_NAMED = 3
_COMMON_QOS = "normal"
"""The QOS that Slurm makes with every database."""


def close_ended(draft: Draft, picture: Accounting, *, others_left: bool = False) -> None:
    """End every quota that is being deleted or is disabled.

    `others_left`: accounts without a quota still have limits of ours; the last quota stays until these are removed.
    """
    teams = {quota.team for quota in draft.quotas.values() if not _is_ending(quota)}
    for quota in [quota for quota in draft.quotas.values() if _is_ending(quota)]:
        both = (guaranteed_qos(quota.team), borrowed_qos(quota.team))
        names = {name for name in both if name in picture.qos}
        coming = not names and any(is_coming(name, picture, draft) for name in both)
        if quota.team in teams:  # another quota of the team took its place
            names, coming = set(), False
        if quota.team not in teams and draft.want.quota.enabled:
            release_all(draft, quota.team)
        if names and picture.reachable and draft.want.quota.enabled:
            _take_out_qos(quota, frozenset(names), picture, draft)
        if not names and not coming and quota.status is QuotaStatus.DELETING:
            if others_left and len(draft.quotas) == 1:
                continue
            if quota.team not in teams and _delete_account(quota, picture, draft):
                continue
            del draft.quotas[quota.id]
            _forget(quota.team, draft)
            draft.tell("quota.deleted", f"quota {quota.name} of team {quota.team} is gone")


def _delete_account(quota: ComputeQuota, picture: Accounting, draft: Draft) -> bool:
    """Delete the empty account that `steward quota setup` made, with the team's last quota.

    Return whether to wait for the deletion.
    """
    account = picture.accounts.get(quota.team)
    if account is None or account.organization != ACCOUNT_MARK or not draft.want.quota.enabled:
        return False
    in_it = any(
        each.parent == quota.team or (each.account == quota.team and each.user) for each in picture.associations
    )
    if in_it or any(job.account == quota.team and not job.is_over for job in draft.seen.jobs.values()):
        return False
    if quota.emptied is None:
        draft.quotas[quota.id] = replace(quota, emptied=draft.now)
    elif draft.now >= quota.emptied + LEAVING_S:
        text = f"account {quota.team}, which Steward made, could not be deleted: it stays, and is empty"
        draft.tell("quota.account_stays", text, level=Level.WARNING)
        return False
    if picture.reachable:
        why = Why(
            rule="quota.account", text=f"the last quota of team {quota.team} is gone, and no user is in its account"
        )
        draft.wish(DropTeam(key=edit_key(f"account {quota.team}", "ends"), why=why, account=quota.team), RETRY_S)
    return True


def closing_teams(picture: Accounting, draft: Draft) -> frozenset[str]:
    """Return the teams whose account is being changed, or deleted, because their quota ends."""
    return frozenset(quota.team for quota in draft.quotas.values() if _is_ending(quota) and _is_closing(quota, picture))


def _is_closing(quota: ComputeQuota, picture: Accounting) -> bool:
    """Return whether the account of a quota that ends has QOS that are taken from it, or is to be deleted."""
    names = frozenset({guaranteed_qos(quota.team), borrowed_qos(quota.team)})
    has = picture.of_account(quota.team)
    has_ours = has is not None and (has.default_qos in names or bool(_qos_to_drop(quota.team, names, picture)))
    return has_ours or quota.emptied is not None


def _is_ending(quota: ComputeQuota) -> bool:
    """Return whether the quota is disabled or being deleted."""
    return not quota.enabled or quota.status is QuotaStatus.DELETING


def _take_out_qos(quota: ComputeQuota, names: frozenset[str], picture: Accounting, draft: Draft) -> None:
    """Remove the team's QOS from its account and its jobs, then delete the QOS."""
    why = Why(rule="quota.ends", text=f"quota {quota.name} of team {quota.team} is no longer in force")
    account = f"account {quota.team}"
    default = _default_before(account, draft)
    has = picture.of_account(quota.team)
    fixed = users_with_default(picture, quota.team, names)
    drop = _qos_to_drop(quota.team, names, picture)
    target, keep = _qos_afterwards(default, has, picture)
    if has is not None and (drop or has.default_qos in names or keep):
        ours = sorted(tres for tres in has.limits if is_ours(f"{account}/cap:{tres}", draft))
        action = SetTeam(
            key=edit_key(account, f"ends {sorted(drop)} {keep}"),
            why=why,
            account=quota.team,
            drop=drop,
            caps=tuple((tres, None) for tres in ours),
            default_qos=default if has.default_qos in names else None,
            keep=keep,
        )
        if draft.wish(action, RETRY_S):
            written = dict.fromkeys((f"cap:{tres}" for tres in ours), "")
            written |= {} if action.default_qos is None else {"default_qos": action.default_qos}
            remember(account, written, draft)
        return
    listed = users_naming(picture, quota.team, names - (has.qos if has is not None else frozenset()))
    errors = (draft.seen.failures.get(drop_key(name), "") for name in sorted(names))
    refused = next((text_of_error(error) for error in errors if is_refusal(error)), "")
    in_it = [job for job in draft.seen.jobs.values() if not job.is_over and names & set(job.qos.split(","))]
    # Slurm may have refused a deletion for what this picture does not show yet, and we undo with the next one
    if all((draft.asked_at(drop_key(name)) or 0.0) < picture.at for name in names):
        _note_why_it_stays(quota, listed, fixed, refused, in_it, draft)
    kept = names if listed else frozenset(fixed.values())
    for job in in_it:
        if job.is_pending and not job.is_completing:
            draft.wish(MoveJob(key=ends_key(job), why=why, job=job.id, qos=(target,)), RETRY_S)
    for name in sorted(names - kept - {name for job in in_it for name in job.qos.split(",")}):
        draft.wish(DropQos(key=drop_key(name), why=why, qos=name), RETRY_S)


def _qos_to_drop(team: str, names: frozenset[str], picture: Accounting) -> frozenset[str]:
    """Return those of its QOS that are taken from the team's account: not the default of one of its users."""
    has = picture.of_account(team)
    return (
        names & (has.qos - set(users_with_default(picture, team, names).values())) if has is not None else frozenset()
    )


def ends_key(job: Job) -> Key:
    """Return the key of the job's move out of the QOS of a team whose quota ends."""
    return Key(f"quota:move:{run_of(job)}:ends")


def _qos_afterwards(default: str, has: Association | None, picture: Accounting) -> tuple[str, str]:
    """Return the QOS for the team's waiting jobs, and the QOS that the account must be given for that.

    The second is empty if the account has QOS of the site.
    """
    # the account's former default, else Slurm's common QOS, else any QOS of the account
    site = frozenset(name for name in has.qos if not name.startswith(QOS_PREFIX)) if has is not None else frozenset()
    wanted = [name for name in (default, _COMMON_QOS) if name and name in picture.qos]
    if not site:
        return (wanted[0], wanted[0]) if wanted else (default or _COMMON_QOS, "")
    return next((name for name in wanted if name in site), min(site)), ""


def _note_why_it_stays(
    quota: ComputeQuota,
    listed: Sequence[str],
    fixed: Mapping[str, str],
    refused: str,
    in_it: Sequence[Job],
    draft: Draft,
) -> None:
    """Note why the quota cannot be removed yet, and warn if a person must act.

    `listed` users have the QOS in their own lists, `fixed` users as their default. `refused` is Slurm's refusal to
    delete a QOS. Jobs `in_it` that still run are only mentioned.
    """
    texts = []
    if listed:
        texts.append(f"lists of QOS of users' own still name those of the team: {remedy_for(listed, quota.team, '-=')}")
    if fixed:
        remedy = (
            f"sacctmgr modify user where name={','.join(sorted(fixed))[:200]} account={quota.team} set defaultqos=-1"
        )
        texts.append(f"users have one of its QOS as their own default: {remedy}")
    runs = [job.shown_id for job in sorted(in_it, key=lambda job: job.id) if not job.is_pending]
    # a job that this picture shows may be what an earlier deletion was refused for
    trouble = "; ".join(texts) or ("" if runs else refused)
    more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    one, several = f"job {', '.join(runs)}, which still runs", f"jobs {', '.join(runs[:_NAMED])}{more}, which still run"
    waits = f"it waits for {one if len(runs) == 1 else several} in its QOS"
    text = trouble or (waits if runs else "")
    if quota.failure != text:
        draft.quotas[quota.id] = replace(quota, failure=text)
        if text and text == trouble:
            draft.tell("quota.trouble", f"quota {quota.name} cannot be deleted: {text}", level=Level.WARNING)


def _default_before(account: str, draft: Draft) -> str:
    """Return the account's default QOS before it had ours; empty if it had none."""
    known = draft.quota_writes.get(f"{account}/default_qos")
    return next((value for value in reversed(known.values) if not value.startswith("stw-")), "") if known else ""


def _forget(team: str, draft: Draft) -> None:
    """Forget the values that were written for the team."""
    # while other quotas are left, keep the account's limits: it is now an account without a quota (see others.py)
    begin = f"account {team}/cap:"
    kept = {key: wrote for key, wrote in draft.quota_writes.items() if key.startswith(begin) and draft.quotas}
    for owner in (guaranteed_qos(team), borrowed_qos(team), f"account {team}"):
        forget(owner, draft)
    for key, wrote in kept.items():
        draft.quota_writes[key] = wrote
