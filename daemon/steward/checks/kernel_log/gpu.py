"""NVIDIA's GPUs and switches, AMD's GPUs, Trainium."""

import re
from dataclasses import replace

from steward.checks.kernel_log.signature import BDF, Signature, row, told
from steward.checks.sxid import judge_sxid
from steward.checks.xid import NVLINK_AGAIN, Nvlink5, judge_nvlink5, judge_recovery, judge_xid, xid_repeat
from steward.model.health import Advice, Severity

_FATAL, _DEGRADED = Severity.FATAL, Severity.DEGRADED
_XID = r"NVRM: Xid \((?:PCI:)?(?P<bdf>[0-9a-fA-F:.]{5,20})\): "
_CARD = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}"
_BY = r",(?: pid=[^,]{0,40},)?(?: name=.{0,60}?,)? {1,4}"
"""The process that an Xid names; its name is the user's to choose, 15 bytes, each shown as four characters at most."""


def _xid_label(match: "re.Match[str]") -> str:
    return f"xid{match['xid']}"


def _nvlink5(match: "re.Match[str]") -> Nvlink5:
    return Nvlink5(
        code=int(match["xid"]),
        unit=match["unit"],
        is_fatal=match["word"] == "Fatal",
        link=match["link"],
        info=int(match["w0"], 16),
        status=int(match["w1"] or "0", 16),
    )


SIGNATURES: tuple[Signature, ...] = (
    Signature(
        name="xid154",
        pattern=re.compile(
            _XID + r"154,.{0,120}?GPU recovery action changed from 0x[0-9a-fA-F]{1,8} \([^()]{0,60}\)"
            r" to 0x[0-9a-fA-F]{1,8} \((?P<act>[^()]{1,60})\)"
        ),
        read=lambda match, line: judge_recovery(match["act"], line),
        subject="bdf",
    ),
    Signature(
        name="xid",
        pattern=re.compile(
            _XID + r"(?P<xid>14[4-9]|150)" + _BY + r"(?P<unit>[A-Z][A-Z0-9_/]{1,40}) {1,8}"
            r"(?P<word>Fatal|Nonfatal) {1,8}XC ?[0-9] {1,8}i ?\d{1,3} {1,8}Link {1,8}(?P<link>-?\d{1,3})"
            r" [(\[](?P<w0>0x[0-9a-fA-F]{1,8})(?: (?P<w1>0x[0-9a-fA-F]{1,8}))?"
        ),
        read=lambda match, line: replace(judge_nvlink5(_nvlink5(match), line), hardware=match["bdf"]),
        label=_xid_label,
        about=lambda match: f"{match['bdf']} link {int(match['link'])}",
        repeat_of=lambda match: NVLINK_AGAIN if _nvlink5(match).counts else None,
    ),
    Signature(
        name="xid",
        pattern=re.compile(_XID + r"(?P<xid>\d{1,4})\b"),
        read=lambda match, line: judge_xid(int(match["xid"]), line),
        label=_xid_label,
        subject="bdf",
        repeat_of=lambda match: xid_repeat(int(match["xid"])),
    ),
    Signature(
        name="xid79",
        pattern=re.compile(
            rf"NVRM: (?:The NVIDIA )?(?:GPU )?(?:at )?(?:(?:PCI:)?(?P<bdf>{_CARD})(?:\.[0-9a-f])?:? )?"
            r".{0,60}fallen off the bus"
        ),
        read=lambda match, line: judge_xid(79, line),
        subject="bdf",
    ),
    Signature(
        name="sxid",
        pattern=re.compile(
            r"nvidia-nvswitch\d{1,3}: SXid \(PCI:(?P<bdf>[0-9a-fA-F:.]{5,20})\): (?P<sxid>\d{5}), "
            r"(?P<word>Fatal|Non-fatal)"
        ),
        read=lambda match, line: judge_sxid(int(match["sxid"]), match["word"] == "Fatal", line),
        label=lambda match: f"sxid{match['sxid']}",
        subject="bdf",
    ),
    row("gpu_init", rf"NVRM: (?:GPU )?(?:(?P<dev>{BDF}): )?.{{0,60}}(?:RmInitAdapter|rm_init_adapter) failed", _FATAL,
        Advice.REBOOT),
    told("gpu_peermem", r"nvidia-peermem .{0,120}invalid context", subject=""),
    row("amd_ras_ue", rf"amdgpu (?P<dev>{BDF}): .{{0,60}}?\b[1-9]\d{{0,9}} uncorrectable (?:hardware )?errors? "
        r"detected", _DEGRADED, Advice.RESET_GPU),
    row("amd_reset_failed", rf"amdgpu (?P<dev>{BDF}): .{{0,60}}GPU reset(?:\(\d{{1,6}}\))? (?:failed|end with ret = -)",
        _DEGRADED, Advice.REBOOT),
    told("amd_reset", rf"amdgpu (?P<dev>{BDF}): .{{0,60}}GPU reset(?:\(\d{{1,6}}\))? (?:begin|succeeded)"),
    row("neuron_hw", r"(?:neuron.{0,100}[ :])?NEURON_HW_ERR=(?:(?:SRAM|NC|HBM)_UNCORRECTABLE_ERROR|DMA_ERROR)",
        _DEGRADED, Advice.REPLACE, subject=""),
)  # fmt: skip
