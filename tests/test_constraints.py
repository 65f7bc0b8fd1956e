"""constraints.txt pins every package that the project declares, to a version that the project allows."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def test_every_dependency_is_pinned_to_a_version_within_its_range():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(re.fullmatch(r"([\w.-]+)==(\S+)", line).groups() for line in lines if not line.startswith("#"))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    declared = [*project["project"]["dependencies"], *(text for extra in extras for text in extra)]
    declared += project["dependency-groups"]["dev"]
    assert len(declared) > 20
    for requirement in map(Requirement, declared):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"constraints.txt does not pin {requirement.name}"
        assert requirement.specifier.contains(version), f"{requirement} does not allow {version}, which is pinned"
