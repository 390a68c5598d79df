"""Packages for Rocky and RHEL by rpmbuild: the same trees and the same scripts."""

import shutil
from pathlib import Path

from tools.packages.contents import Package
from tools.packages.deb import body_of
from tools.packages.sites import run

_ELSEWHERE = {"/usr/share/zsh/vendor-completions/": "/usr/share/zsh/site-functions/"}
"""Folders of Debian -> where Rocky and RHEL look."""
_PHASES = {"post": ("installed", ""), "preun": ("removing", "0"), "postun": ("removed", "0")}


def spec(package: Package, tree: Path, *, version: str, release: str) -> str:
    """A spec that builds nothing: it packs the tree. rpm has no purge: what Debian keeps until then stays."""
    needs = [f"{each} = {version}-{release}" if each.startswith("steward-") else each for each in package.depends]
    lines = [
        f"Name: {package.name}",
        f"Version: {version}",
        f"Release: {release}",
        f"Summary: {package.summary}",
        "License: Apache-2.0",
        "AutoReqProv: no",
        *(f"Requires: {each}" for each in needs),
        *(f"Provides: {each}\nConflicts: {each}" for each in package.provides),
        "%global __os_install_post %{nil}",
        "%define _build_id_links none",
        "%description",
        package.summary,
        "%install",
        f"cp -a {tree}/. %{{buildroot}}/",
        *_moves(tree),
    ]
    for name, (part, last) in _PHASES.items():
        if body := body_of(package, part):
            lines += [f"%{name}", f'if [ "$1" = {last} ]; then\n{body}fi' if last else body.rstrip()]
    lines += ["%files", "%defattr(-,root,root,-)", *_listed(tree)]
    return "\n".join(lines) + "\n"


def _moves(tree: Path) -> list[str]:
    """Lines that put files where these systems look for them."""
    found = [(old, new) for old, new in _ELSEWHERE.items() if (tree / old.lstrip("/")).is_dir()]
    return [f"mkdir -p %{{buildroot}}{new}; mv %{{buildroot}}{old}* %{{buildroot}}{new}" for old, new in found]


def _listed(tree: Path) -> list[str]:
    """Every file; folders only where they are empty, and those of Steward itself."""
    found = []
    for path in sorted(tree.rglob("*")):
        place = f"/{path.relative_to(tree)}"
        is_folder = path.is_dir() and not path.is_symlink()
        if not is_folder:
            old = next((folder for folder in _ELSEWHERE if place.startswith(folder)), "")
            found.append(f'"{_ELSEWHERE.get(old, "")}{place.removeprefix(old)}"')
        elif place.startswith(("/opt/steward", "/etc/steward", "/usr/lib/steward")):
            found.append(f'%dir "{place}"')
    return found


def build(package: Package, tree: Path, out: Path, version: str, release: str) -> Path:
    top = out / ".rpm"
    top.mkdir(exist_ok=True)
    file = top / f"{package.name}.spec"
    file.write_text(spec(package, tree, version=version, release=release))
    run("rpmbuild", "-bb", "--quiet", "--define", f"_topdir {top}", file)
    made = next((top / "RPMS").rglob(f"{package.name}-{version}-{release}.*.rpm"))
    return Path(shutil.move(made, out / made.name))
