"""The settings file (`/etc/steward/steward.toml`): every key with default, unit, range and meaning."""

from steward.model.setting_types import CheckMode, ProviderKind, RepairMode, split_host_port
from steward.model.settings.errors import Problem, SettingsError
from steward.model.settings.parse import parse
from steward.model.settings.root import Settings

__all__ = [
    "CheckMode",
    "Problem",
    "ProviderKind",
    "RepairMode",
    "Settings",
    "SettingsError",
    "parse",
    "split_host_port",
]
