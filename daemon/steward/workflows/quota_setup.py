"""Prepare Slurm for quotas (`steward quota setup`): show what is missing, and make accounts and QOS if asked.

Lines of slurm.conf are for the admin to write. Accounts and QOS are made only if asked for, and only if no setting is
missing that quotas need: nothing is left half set up.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from steward.model.accounting import ACCOUNT_MARK, QOS_MARK, Accounting, borrowed_qos, guaranteed_qos
from steward.model.action import SetQos, SetTeam
from steward.model.ids import Key
from steward.model.why import Why
from steward.ports import AccountingPort, Permanent
from steward.workflows.doctor_quota import Site, conf_lines, missing

_WHY = Why(rule="quota.setup", text="an admin runs `steward quota setup --apply`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The parts that quotas need and Slurm lacks.

    `conf`: lines for slurm.conf. `accounts`, `qos`: names to make. `teams`: accounts that may not use their QOS yet,
    with these QOS.
    """

    conf: tuple[str, ...]
    accounts: tuple[str, ...]
    qos: tuple[str, ...]
    teams: Mapping[str, tuple[str, ...]]

    @property
    def is_done(self) -> bool:
        """Return whether nothing is missing."""
        return not (self.conf or self.accounts or self.qos or self.teams)

    def commands(self, cluster: str) -> Iterator[str]:
        """Yield the commands with which an admin would do the same."""
        for account in self.accounts:
            words = f"organization={ACCOUNT_MARK} description='steward: team'"
            yield f"sacctmgr -i add account {account} cluster={cluster} {words}"
        for name in self.qos:
            yield f"sacctmgr -i add qos {name} description='{QOS_MARK}'"
        for account, names in self.teams.items():
            for words in (f"qos+={','.join(names)}", f"defaultqos={names[0]}"):  # apart: Slurm may refuse the default
                yield f"sacctmgr -i modify account where name={account} cluster={cluster} set {words}"


def needed(site: Site, borrowers: Collection[str]) -> Setup:
    """Return the missing parts for the teams of `site`; the teams in `borrowers` may borrow."""
    picture = site.picture
    names = {team: _names(team, team in borrowers) for team in sorted(site.teams)}
    return Setup(
        conf=tuple(conf_lines(site)),
        accounts=tuple(team for team in names if picture.of_account(team) is None),
        qos=tuple(name for each in names.values() for name in each if name not in picture.qos),
        teams={team: each for team, each in names.items() if not _may_use(picture, team, each)},
    )


def carry_out(setup: Setup, site: Site, port: AccountingPort) -> None:
    """Make accounts and QOS; repeating it is a success.

    Raises Permanent, with the line to add and before any change, if a setting keeps quotas from working.
    """
    if lacking := missing(site):
        raise Permanent(f"{lacking[0].text}. To do: {lacking[0].remedy}. Nothing was changed")
    for name in setup.qos:
        port.set_qos(SetQos(key=Key(f"setup:{name}"), why=_WHY, qos=name))
    for account in setup.accounts:
        port.make_account(account)
    for account, names in setup.teams.items():
        key = Key(f"setup:{account}")
        port.set_team(SetTeam(key=key, why=_WHY, account=account, add=frozenset(names), default_qos=names[0]))


def _names(team: str, borrows: bool) -> tuple[str, ...]:
    """Return the team's QOS: its own, and the one to borrow with if it may borrow."""
    return (guaranteed_qos(team), borrowed_qos(team)) if borrows else (guaranteed_qos(team),)


def _may_use(picture: Accounting, team: str, names: tuple[str, ...]) -> bool:
    """Return whether the team's account may use these QOS, the first of them by default."""
    there = picture.of_account(team)
    return there is not None and set(names) <= there.qos and there.default_qos == names[0]
