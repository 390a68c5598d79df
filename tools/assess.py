#!/usr/bin/env python3
"""`python3 -m tools.assess [FOLDER]`: `steward assess` alone, as one file for a login host and a wheel for `pipx run`.

Both have the package `steward_assess`, which is daemon/steward/assess, and need Python 3.9 and nothing else.
"""

import base64
import hashlib
import shutil
import sys
import tempfile
import zipapp
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "daemon/steward/assess"
PACKAGE = "steward_assess"
# Also an old Python reads this much, so that it can say what it lacks.
START = """import sys

if sys.version_info < (3, 9):
    sys.exit("steward-assess needs Python 3.9 or newer: run it as python3.11 steward-assess.pyz, or whatever is here")
from steward_assess.__main__ import main

sys.exit(main())
"""


def build(out: Path, version: str) -> tuple[Path, Path]:
    """Return the single file and the wheel."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        shutil.copytree(SOURCE, tree / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "LICENSE", tree / PACKAGE)
        wheel = _wheel(tree, out, version)
        (tree / "__main__.py").write_text(START)
        single = out / "steward-assess.pyz"
        zipapp.create_archive(tree, single, interpreter="/usr/bin/env python3", compressed=True)
    return single, wheel


def _wheel(tree: Path, out: Path, version: str) -> Path:
    info = f"{PACKAGE}-{version}.dist-info"
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: steward-assess\nVersion: {version}\nRequires-Python: >=3.9\n"
        "Summary: What faults have cost on a Slurm cluster\nLicense: Apache-2.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: steward\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\nsteward-assess = {PACKAGE}.__main__:main\n",
    }
    files = {str(path.relative_to(tree)): path.read_bytes() for path in sorted(tree.rglob("*")) if path.is_file()}
    files |= {name: text.encode() for name, text in texts.items()}
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = out / f"{PACKAGE}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _version() -> str:
    text = (ROOT / "daemon/steward/__init__.py").read_text()
    return next(line.split('"')[1] for line in text.splitlines() if line.startswith("__version__"))


if __name__ == "__main__":
    for made in build(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "dist", _version()):
        print(made)
