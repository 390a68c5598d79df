"""`python -m steward.head.leave`: remove stewardd's features from Slurm's nodes, before Steward is removed."""

import os
import sys

from steward.adapters.settings_file import load
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.model.settings import SettingsError
from steward.policy.traits import HEALTH
from steward.ports import PortError

_LIMIT_S = 30.0


def main() -> int:
    """Remove the health feature from all nodes. Return 1, after a line with the reason, if that fails."""
    try:
        slurm = CommandLineSlurm(conf=str(load(None, os.environ).cluster.slurm_conf), timeout_s=_LIMIT_S)
        slurm.set_feature(slurm.nodes(), HEALTH, "")
    except (SettingsError, PortError) as error:
        print(f"nodes keep their feature {HEALTH}... until `scontrol reconfigure`: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
