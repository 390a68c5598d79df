"""Amounts of resources in words."""

from collections.abc import Mapping

from steward.model.quota import CPU, GPU, MEM, Resource, kind_of, machine_type_of

_MIB_PER_GIB = 1024


def amounts_text(amounts: Mapping[Resource, int]) -> str:
    """Return amounts in words: `2 GPUs of ml.g6.12xlarge, 16 GiB of ml.c5.2xlarge`; `nothing` if there are none."""
    return (
        ", ".join(f"{_amount(name, amounts[name])} of {machine_type_of(name)}" for name in sorted(amounts)) or "nothing"
    )


def _amount(name: Resource, amount: int) -> str:
    """Return one amount in words."""
    kind = kind_of(name)
    if kind == MEM:
        gib = amount / _MIB_PER_GIB
        return f"{gib:.0f} GiB" if gib == int(gib) else f"{gib:.1f} GiB"
    word = {GPU: "GPU", CPU: "CPU"}.get(kind, kind.removeprefix("gpu:"))
    return f"{amount} {word}" if amount == 1 else f"{amount} {word}s"
