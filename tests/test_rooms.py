import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "instances": set(),
    "heuristics": {"instances"},
    "formulations": {"instances"},
    "relocbench": {"instances", "heuristics", "formulations"},
    "spark": {"instances", "heuristics", "formulations", "relocbench"},
    "reports": {"instances", "heuristics", "formulations", "relocbench", "spark"},
}


def imported_rooms(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: relative imports hide the arrow"
            names = [node.module]
        for name in names:
            room = name.partition(".")[0]
            if room in MAY_IMPORT or room == "tests":
                yield room, node.lineno


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_arrows_between_rooms_point_one_way(room):
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    for file in files:
        for other, line in imported_rooms(file):
            assert other == room or other in MAY_IMPORT[room], f"{file.relative_to(ROOT)}:{line} imports {other}"


def test_every_room_is_shipped():
    config = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for room in MAY_IMPORT:
        assert (ROOT / room / "__init__.py").exists()
        assert config.count(f'"{room}"') >= 2
