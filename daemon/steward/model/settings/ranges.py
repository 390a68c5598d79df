"""The range of a number, as people read it."""

from pydantic.fields import FieldInfo


def range_text(field: FieldInfo) -> str:
    """`from 0 to 60`, `above 0, up to 100`, or empty where the field is not a number with limits."""
    limits = {
        name: getattr(rule, name) for rule in field.metadata for name in ("gt", "ge", "lt", "le") if hasattr(rule, name)
    }
    low = f"above {limits['gt']:g}" if "gt" in limits else f"from {limits['ge']:g}" if "ge" in limits else ""
    high = f"to {limits['le']:g}" if "le" in limits else ""
    return f"{low}, up {high}" if "gt" in limits and high else f"{low} {high}".strip()
