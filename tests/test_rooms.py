"""The rooms import each other one way only, by the name that they are installed by, and without cycles."""

import ast
import graphlib
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


def module_name(file):
    """Return the name that a file of a room is imported by."""
    parts = [part for part in file.relative_to(ROOT).with_suffix("").parts if part != "__init__"]
    return ".".join(parts if parts[0] == "relocbench" else ["relocbench", *parts])


MODULES = {module_name(file): file for room in MAY_IMPORT for file in sorted((ROOT / room).rglob("*.py"))}


def room_of(module):
    """Return the room of a module of ours by its full name, "tests" for a test, and None for anybody else's module."""
    first, *rest = module.split(".")
    assert first not in MAY_IMPORT or first == "relocbench", f"{module} must be imported as relocbench.{module}"
    if first != "relocbench":
        return first if first == "tests" else None
    return rest[0] if rest and rest[0] in MAY_IMPORT else "relocbench"


def imports(file):
    """Yield (module, line) of every import of a file, also of those inside functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import hides the room"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module, node.lineno


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_the_rooms_below_it(room):
    files = [file for module, file in MODULES.items() if room_of(module) == room]
    assert files
    for file in files:
        for module, line in imports(file):
            other = room_of(module)
            allowed = other is None or other == room or other in MAY_IMPORT[room]
            assert allowed, f"{file.relative_to(ROOT)}:{line} imports {module}"


def test_no_modules_import_each_other_in_a_circle():
    graph = {name: {module for module, _ in imports(file) if module in MODULES} for name, file in MODULES.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the modules


def test_a_circle_through_an_import_inside_a_function_is_found(tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("import two\n")
    two.write_text("def f():\n    import one\n")
    graph = {file.stem: {module for module, _ in imports(file)} for file in (one, two)}
    with pytest.raises(graphlib.CycleError):
        list(graphlib.TopologicalSorter(graph).static_order())


def test_no_command_imports_another_command():
    commands = {module: file for module, file in MODULES.items() if module.startswith("relocbench.commands.")}
    shared = {"relocbench.commands.options"}
    assert len(commands) > 20
    for file in commands.values():
        for module, line in imports(file):
            assert module not in commands.keys() - shared, f"{file.relative_to(ROOT)}:{line} imports {module}"


@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_tests_and_benchmarks_import_rooms_by_the_installed_name(folder):
    for file in sorted((ROOT / folder).rglob("*.py")):
        for module, _ in imports(file):
            room_of(module)  # which asserts it


@pytest.mark.parametrize("room", sorted(MAY_IMPORT.keys() - {"relocbench"}))
def test_every_room_is_a_part_of_the_package(room):
    assert (ROOT / room / "__init__.py").samefile(ROOT / "relocbench" / room / "__init__.py")
