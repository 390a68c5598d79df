"""The check that the libraries of the NVIDIA driver can be loaded: a cut-off update leaves empty files behind."""

from steward.checks.check import Check, Facts, Judgement, Past, failed, on_every_node, passed, skipped
from steward.model.health import Advice, Severity
from steward.model.probe import Raw, ReadTree

_FOLDERS = ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib/nvidia", "/usr/local/nvidia/lib64")
_NAMES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1")
_ELF = "\x7fELF"


def _judge(raws: tuple[Raw, ...], facts: Facts, past: Past) -> Judgement:
    files = raws[0].files
    if not files:
        return skipped("no library of the NVIDIA driver in the system's folders")
    if bad := sorted(path for path, text in files.items() if not (text or "").startswith(_ELF)):
        return failed(f"empty or no library: {', '.join(bad)}", Severity.DEGRADED, Advice.REPLACE)
    return passed("the libraries of the NVIDIA driver can be loaded")


LIBRARIES = Check(
    id="gpu.libraries",
    probes=on_every_node(ReadTree(patterns=tuple(f"{folder}/{name}" for folder in _FOLDERS for name in _NAMES))),
    judge=_judge,
    default_mode="report",
    every_s=600.0,
    is_quick=False,
    title="library of the NVIDIA driver cannot be loaded",
    source="files",
    cost_ms=2.0,
)
"""The check of the files that every CUDA program loads first. The remedy is a new image or package, not a reboot."""
