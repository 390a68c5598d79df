"""The path of the settings file, known without the settings themselves, which take longer to import than to read."""

from collections.abc import Mapping
from pathlib import Path

DEFAULT_PATH = Path("/etc/steward/steward.toml")


def settings_path(path: Path | None, env: Mapping[str, str]) -> Path:
    """Return the path in use: the given one, else `STEWARD_CONFIG`, else the default."""
    return path or Path(env.get("STEWARD_CONFIG") or DEFAULT_PATH)
