import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "instances": set(),
    "heuristics": {"instances"},
    "formulations": {"instances"},
    "runs": {"instances", "heuristics", "formulations"},
    "spark": {"instances", "heuristics", "formulations", "runs"},
    "reports": {"instances", "heuristics", "formulations", "runs", "spark"},
    "relocbench": {"instances", "heuristics", "formulations", "runs", "spark", "reports"},
}


def room_of(module):
    """Return the room of a module of ours, by its full name; None where it is not ours."""
    first, *rest = module.split(".")
    assert first not in MAY_IMPORT or first == "relocbench", f"{module} is called relocbench.{module}"
    if first != "relocbench":
        return first if first == "tests" else None
    return rest[0] if rest and rest[0] in MAY_IMPORT else "relocbench"


def imported_rooms(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: relative imports hide the arrow"
            names = (
                [f"relocbench.{alias.name}" for alias in node.names] if node.module == "relocbench" else [node.module]
            )
        for name in names:
            if (room := room_of(name)) is not None:
                yield room, node.lineno


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_arrows_between_rooms_point_one_way(room):
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    for file in files:
        for other, line in imported_rooms(file):
            assert other == room or other in MAY_IMPORT[room], f"{file.relative_to(ROOT)}:{line} imports {other}"


@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_rooms_are_imported_by_the_name_they_are_installed_by(folder):
    for file in sorted((ROOT / folder).rglob("*.py")):
        list(imported_rooms(file))


@pytest.mark.parametrize("room", sorted(MAY_IMPORT.keys() - {"relocbench"}))
def test_every_room_is_a_part_of_the_package(room):
    assert (ROOT / room / "__init__.py").samefile(ROOT / "relocbench" / room / "__init__.py")
