"""Interfaces that were up in this boot and are not any more. One that was never up is not in use; one that went away
altogether was given to a guest, or taken back by the cloud, which says nothing about the node."""

from steward.checks.check import Check, Facts, Verdict, failed, passed, skipped, unknown
from steward.checks.fabric import links
from steward.checks.fabric.net import Interface, interfaces, probes
from steward.checks.modes import by_id
from steward.checks.past import Notes, Past
from steward.model.health import Advice, Severity
from steward.model.probe import Raw


def note(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Notes:
    return links.follow({one.name: one.is_up for one in interfaces(raws[0], facts) if one.operstate}, past)


def judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Verdict:
    found = interfaces(raws[0], facts)
    if not found:
        return skipped("no physical Ethernet interface on this node")
    if not any(one.operstate for one in found):
        return unknown(f"no operstate in sysfs: {found[0].name}")
    lost = [one for one in found if one.operstate and links.down_for(one.name, past) is not None]
    if not lost:
        return passed(f"{sum(one.is_up for one in found)} of {len(found)} interfaces up, none was lost")
    severity = Severity.SUSPECT if all(one.is_in_bond for one in lost) else Severity.DEGRADED
    return failed("; ".join(map(_told, lost[:8])), severity, Advice.REBOOT, hardware=lost[0].name)


def _told(interface: Interface) -> str:
    """Whoever sets an interface down may have wanted it: say so."""
    how = f"{interface.operstate}" if interface.is_enabled else f"{interface.operstate} (set down by an administrator)"
    return f"{interface.name} was up and is {how}" + (", part of a bond" if interface.is_in_bond else "")


CHECK = Check(
    id="net.operstate",
    probes=probes,
    judge=judge,
    note=note,
    mode=by_id("net.operstate", "drain"),
    confirm_s=5.0,
    bad_for_s=60.0,
    title="Ethernet interface down",
    source="sysfs",
)
