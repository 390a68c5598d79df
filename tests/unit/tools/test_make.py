"""What the Makefile gives to all that it starts."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
ASK = "asked: ; @python3 -c 'import sys; print(sys.dont_write_bytecode)'"


def test_python_keeps_what_it_compiled_whatever_the_environment_says() -> None:
    command = ["make", "-s", "-C", str(ROOT), "--eval", ASK, "asked"]
    run = subprocess.run(
        command,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.strip() == "False"
