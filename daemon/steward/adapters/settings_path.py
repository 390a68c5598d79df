"""The path of the settings file, separate from the settings, whose import takes longer than reading the path."""

from collections.abc import Mapping
from pathlib import Path

DEFAULT_PATH = Path("/etc/steward/steward.toml")


def settings_path(path: Path | None, env: Mapping[str, str]) -> Path:
    """Return the settings file in use: the one named, else `STEWARD_CONFIG`, else the default."""
    return path or Path(env.get("STEWARD_CONFIG") or DEFAULT_PATH)
