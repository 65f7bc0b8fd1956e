"""Every public function says what it takes, what it returns and what it raises."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("instances", "heuristics", "formulations", "runs", "spark", "reports", "relocbench")


def public_functions(tree):
    """Yield (name, node) of the functions and methods that other modules may call; properties are no functions."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def is_public(node):
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    is_value = bool(decorators & {"property", "cached_property", "functools.cached_property"})
    return not node.name.startswith("_") and not is_value


def lacking(node):
    """Return what the docstring of a function does not say."""
    text = ast.get_docstring(node) or ""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    names = [argument.arg for argument in arguments if argument is not None and argument.arg not in ("self", "cls")]
    sections = re.split(r"^(Parameters|Returns|Yields|Raises)\n-+$", text, flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    # A parameter that is documented stands on a line of its own, alone or with others between commas.
    documented = set(re.findall(r"\*{0,2}(\w+)", "\n".join(re.findall(r"^\S.*$", found.get("Parameters", ""), re.M))))
    missing = [f"parameter {name}" for name in names if name not in documented]
    returns = ast.unparse(node.returns) if node.returns is not None else "None"
    if returns not in ("None", "NoReturn") and not found.keys() & {"Returns", "Yields"}:
        missing.append("what it returns")
    raised = {
        ast.unparse(raising.exc.func).rpartition(".")[2]
        for raising in ast.walk(node)
        if isinstance(raising, ast.Raise) and isinstance(raising.exc, ast.Call)
    }
    errors = {name for name in raised if name.endswith("Error") and name not in found.get("Raises", "")}
    return missing + [f"that it raises {name}" for name in sorted(errors)]


def complaints(file):
    # The parameters of a command are options, which say themselves what they are for.
    command = "commands" in file.parts
    for name, node in public_functions(ast.parse(file.read_text(encoding="utf-8"))):
        if is_public(node) and not (command and name == "run") and (found := lacking(node)):
            yield f"{file}:{node.lineno} {name}: does not say {', '.join(found)}"


@pytest.mark.parametrize("room", ROOMS)
def test_public_functions_document_parameters_results_and_errors(room):
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    assert not [line for file in files for line in complaints(file)]


def test_a_docstring_that_leaves_something_out_is_found():
    node = ast.parse(
        "def f(a, b: int) -> int:\n"
        '    """Do.\n\n    Parameters\n    ----------\n    a\n        The first, not b.\n    """\n'
        "    raise ValueError(a)\n"
    ).body[0]
    assert lacking(node) == ["parameter b", "what it returns", "that it raises ValueError"]
