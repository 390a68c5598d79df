"""What the start of an agent costs."""

import subprocess
import sys


def test_an_agent_imports_none_of_the_records_that_only_the_head_makes() -> None:
    """To make their classes took a fifth of the time of a start."""
    heads = {f"steward.model.{name}" for name in ("action", "observed", "memory", "case", "accounting")}
    code = f"import sys, steward.agent.__main__; print(sorted({heads} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"
