"""`python -m steward.head.leave`: take away what stewardd shows of itself on Slurm's nodes; for who removes Steward."""

import os
import sys

from steward.adapters.settings_file import load
from steward.adapters.slurm.cli import CommandLineSlurm
from steward.model.settings import SettingsError
from steward.policy.traits import HEALTH
from steward.ports import PortError

_LIMIT_S = 30.0


def main() -> int:
    """Take the feature of health from all nodes; return 1, with a line that says why, where that cannot be."""
    try:
        slurm = CommandLineSlurm(conf=str(load(None, os.environ).cluster.slurm_conf), timeout_s=_LIMIT_S)
        slurm.set_feature(slurm.nodes(), HEALTH, "")
    except (SettingsError, PortError) as error:
        print(f"nodes keep their feature {HEALTH}... until `scontrol reconfigure`: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
