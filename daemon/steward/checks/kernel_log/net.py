"""Network adapters: InfiniBand and Ethernet (mlx5), EFA, links. What a link is now, sysfs says better."""

from steward.checks.kernel_log.signature import BDF, Signature, row, told
from steward.checks.repeat import Repeat
from steward.model.health import Advice, Severity

_DEGRADED, _INFO = Severity.DEGRADED, Severity.INFO
_TX = Repeat(times=3, within_s=3600.0, severity=_DEGRADED, advice=Advice.REBOOT)
_EFA = Repeat(times=3, within_s=3600.0, severity=_DEGRADED, advice=Advice.REPLACE)
_MLX5 = rf"mlx5_core (?P<dev>{BDF}): "
_LINK = r"(?:ib\w{1,12}|en\w{1,12}|eth\d{1,3}|hsn\d{1,3}|bond\d{1,3})"

SIGNATURES: tuple[Signature, ...] = (
    row("ib_cmd_timeout", _MLX5 + r".{0,160}timeout\. Will cause a leak of a command resource", _DEGRADED,
        Advice.REBOOT),
    row("ib_fw_dead", _MLX5 + r".{0,160}?(?:health poll failed|device's health compromised"
        r"|[Uu]nrecoverable (?:hardware )?error)", _DEGRADED, Advice.REBOOT),
    told("ib_temp", _MLX5 + r"Port module event.{0,60}High Temperature"),
    told("ib_unplug", _MLX5 + r".{0,60}[Cc]able (?:unplugged|error)"),
    row("net_tx_timeout", r"NETDEV WATCHDOG: (?P<dev>\S{1,15}) \([^)]{1,32}\): transmit queue", _INFO, repeat=_TX),
    row("net_tx_timeout", r"(?:\S{1,32} \S{1,20} )?(?P<dev>[\w.-]{1,15})(?: \([^)]{1,32}\))?: NETDEV WATCHDOG: "
        r"CPU: \d{1,5}: transmit queue", _INFO, repeat=_TX),
    told("net_carrier", rf"(?:[\w-]{{1,24}} {BDF}:? )?(?P<dev>{_LINK}): (?:[Ll]ost carrier|(?:NIC )?[Ll]ink is [Dd]own"
         r"|[Ll]ink down)"),
    row("efa_timeout", rf"efa (?P<dev>{BDF}):? .{{0,120}}?"
        r"(?:Completion timeout|[Kk]eep ?[Aa]live [\w ]{0,40}timeout)", _INFO, repeat=_EFA),
    told("efa_cmd", rf"efa (?P<dev>{BDF}):? .{{0,60}}?Failed to"),
)  # fmt: skip
