"""Trees of sysfs and what a look at them brings: a node's fabric and accelerators, whole or broken.

`write(root, files)` puts a tree where `agent.sys_dir` may point; `raw(files)` is the same as a probe's answer.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path

from steward.model.probe import Raw

Files = dict[str, str | None]

IB_COUNTERS = (
    "link_downed",
    "link_error_recovery",
    "symbol_error",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "port_rcv_errors",
    "port_xmit_discards",
)
HW_COUNTERS = ("rnr_nak_retry_err", "local_ack_timeout_err", "roce_slow_restart")


def infiniband(
    name: str = "mlx5_0",
    *,
    port: int = 1,
    state: str = "4: ACTIVE",
    phys_state: str = "5: LinkUp",
    rate: str = "400 Gb/sec (4X NDR)",
    layer: str = "InfiniBand",
    slot: str = "",
    driver: str = "mlx5_core",
    counters: Mapping[str, int] | None = None,
    is_guests: bool = False,
) -> Files:
    """One port of one adapter. `counters` says those that are not zero, or that this adapter has beside the usual."""
    device = f"/sys/class/infiniband/{name}"
    at = f"{device}/ports/{port}"
    counted = {**dict.fromkeys((*IB_COUNTERS, *HW_COUNTERS), 0), **(counters or {})}
    files: Files = {
        f"{device}/device/uevent": f"DRIVER={driver}\nPCI_SLOT_NAME={slot or slot_of(name)}\n",
        f"{at}/state": f"{state}\n",
        f"{at}/phys_state": f"{phys_state}\n",
        f"{at}/rate": f"{rate}\n",
        f"{at}/link_layer": f"{layer}\n",
    }
    if is_guests:
        files[f"{device}/device/physfn/uevent"] = f"DRIVER={driver}\n"
    for counter, value in counted.items():
        kind = "counters" if counter in IB_COUNTERS else "hw_counters"
        files[f"{at}/{kind}/{counter}"] = f"{value}\n"
    return files


def efa(name: str = "rdmap0s6", *, counters: Mapping[str, int] | None = None, has_verbs: bool = True) -> Files:
    """An EFA device of EC2."""
    zero = dict.fromkeys(("rx_drops", "rdma_read_wr_err", "retrans_pkts", "retrans_bytes"), 0)
    at = f"/sys/class/infiniband/{name}/ports/1"
    link = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "100 Gb/sec (4X EDR)", "link_layer": "Unspecified"}
    verbs = {f"/sys/class/infiniband_verbs/uverbs{zlib.crc32(name.encode()) % 1000}/ibdev": f"{name}\n"}
    return {
        **(verbs if has_verbs else {}),
        f"/sys/class/infiniband/{name}/device/uevent": f"DRIVER=efa\nPCI_ID=1D0F:EFA2\nPCI_SLOT_NAME={slot_of(name)}\n",
        **{f"{at}/{file}": f"{text}\n" for file, text in link.items()},
        **{f"{at}/hw_counters/{file}": f"{value}\n" for file, value in {**zero, **(counters or {})}.items()},
    }


def ethernet(
    name: str = "eth0",
    *,
    operstate: str = "up",
    downs: int = 0,
    flags: str = "0x1003",
    type: str = "1",
    has_device: bool = True,
    is_in_bond: bool = False,
    is_guests: bool = False,
) -> Files:
    at = f"/sys/class/net/{name}"
    files: Files = {
        f"{at}/operstate": f"{operstate}\n",
        f"{at}/carrier_changes": f"{2 * downs + 1}\n",
        f"{at}/carrier_down_count": f"{downs}\n",
        f"{at}/flags": f"{flags}\n",
        f"{at}/type": f"{type}\n",
    }
    if has_device:
        files[f"{at}/device/uevent"] = f"DRIVER=ice\nPCI_SLOT_NAME={slot_of(name)}\n"
    if is_in_bond:
        files[f"{at}/bonding_slave/state"] = "active\n"
    if is_guests:
        files[f"{at}/device/physfn/uevent"] = "DRIVER=ice\n"
    return files


def slot_of(name: str) -> str:
    """A PCI address that is the same for the same name."""
    number = zlib.crc32(name.encode())
    return f"0000:{number >> 8 & 0xFF:02x}:{number & 0x1F:02x}.0"


def raw(*parts: Files) -> Raw:
    return Raw(files=merged(*parts))


def merged(*parts: Files) -> Files:
    files: Files = {}
    for part in parts:
        files |= part
    return files


def write(root: Path, *parts: Files) -> None:
    """Make the tree below `root`, which takes the place of /sys."""
    for path, text in merged(*parts).items():
        file = root / path.removeprefix("/sys/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text or "")


def recorded(path: Path) -> Raw:
    """A tree recorded with `grep -r '' PATH...`: one line `file:text` for each line of a file."""
    files: Files = {}
    for line in path.read_text().splitlines():
        name, _, text = line.partition(":")
        files[name] = (files.get(name) or "") + text + "\n"
    return Raw(files=files)


def kfd_cpu(node: int = 90) -> Files:
    """The compute driver lists the processors, too."""
    at = f"/sys/class/kfd/kfd/topology/nodes/{node}"
    return {f"{at}/gpu_id": "0\n", f"{at}/properties": "cpu_cores_count 96\nsimd_count 0\nunique_id 0\n"}


def amd_gpu(number: int, *, errors: Mapping[str, int] | None = None, pages: str = "", junction_c: int = 60) -> Files:
    """An Instinct GPU. `errors` are uncorrectable ones by block, `pages` a letter for each bad page."""
    node, card = f"/sys/class/kfd/kfd/topology/nodes/{number + 2}", f"/sys/class/drm/card{number}/device"
    unique = 0x1000_0000_0000_0000 + number
    counts = {**dict.fromkeys(("umc", "gfx", "sdma", "mmhub", "xgmi_wafl"), 0), **(errors or {})}
    listed = "".join(f"0x{n + 4096:08x} : 0x00001000 : {letter}\n" for n, letter in enumerate(pages))
    return {
        f"{node}/gpu_id": f"{50000 + number}\n",
        f"{node}/properties": f"simd_count 1216\nlocation_id {256 * number}\ndomain 0\nunique_id {unique}\n",
        f"{card}/unique_id": f"{unique:016x}\n",
        f"{card}/ras/gpu_vram_bad_pages": listed,
        **{f"{card}/ras/{block}_err_count": f"ue: {count}\nce: 0\n" for block, count in counts.items()},
        f"{card}/hwmon/hwmon{number}/temp2_label": "junction\n",
        f"{card}/hwmon/hwmon{number}/temp2_input": f"{junction_c * 1000}\n",
        f"{card}/hwmon/hwmon{number}/temp2_crit": "105000\n",
    }


def neuron_device(number: int, *, errors: Mapping[str, int] | None = None, hw_errors: int = 0, cores: int = 2) -> Files:
    at = f"/sys/devices/virtual/neuron_device/neuron{number}"
    names = ("mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected", "sram_ecc_uncorrected")
    counts = {**dict.fromkeys(names, 0), **(errors or {})}
    return {
        f"{at}/uevent": f"MAJOR=240\nMINOR={number}\nDEVNAME=neuron{number}\n",
        **{f"{at}/stats/hardware/{name}": f"{count}\n" for name, count in counts.items()},
        **{f"{at}/neuron_core{core}/stats/status/hw_error/total": f"{hw_errors}\n" for core in range(cores)},
    }


def listed(files: Files) -> str:
    """As `grep -r ''` prints a tree; `recorded` reads it."""
    lines = ((path, line) for path, text in sorted(files.items()) for line in (text or "").splitlines() or [""])
    return "".join(f"{path}:{line}\n" for path, line in lines)
