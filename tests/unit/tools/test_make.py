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


def test_the_shim_is_built_anew_for_another_slurm(tmp_path: Path) -> None:
    """Slurm refuses a plugin of another version: an old one that is taken for the new one opts no job in."""
    (tmp_path / "slurm").mkdir()
    header = (
        "#include_next <slurm/slurm_version.h>\n#undef SLURM_VERSION_NUMBER\n#define SLURM_VERSION_NUMBER 0x636261\n"
    )
    (tmp_path / "slurm/slurm_version.h").write_text(header)
    made = tmp_path / "build/dispatch.o"
    words = ["make", "-s", "-C", str(ROOT / "spank"), f"BUILD={made.parent}", str(made)]
    for flags, is_other in (([], False), ([f"SLURM_CFLAGS=-I{tmp_path}"], True), ([], False)):
        subprocess.run([*words, *flags], check=True, timeout=60)
        assert (b"abc\0" in made.read_bytes()) == is_other
