import pytest

from relocbench.instances.errors import InputError
from relocbench.runs.methods import METHODS
from relocbench.runs.selectors import parse_selector, parse_selectors

NAMES = ", ".join(METHODS)


@pytest.mark.parametrize(
    ("text", "settings", "start"),
    [
        ("nearest", {}, None),
        (" reloc [ k = 8 , cooperation = topic ] ", {"k": 8, "cooperation": "topic"}, None),
        ("reloc[k=auto,revisit=true]", {"k": "auto", "revisit": True}, None),
        ("anneal[moves=2e6]", {"moves": 2_000_000}, None),
        ("anneal[start=reloc[k=8,relation=exact],moves=5]", {"moves": 5}, "reloc[k=8,relation=exact]"),
        ("anneal[start=anneal[start=otos]]", {}, "anneal[start=otos]"),
    ],
)
def test_selectors_are_parsed_and_written(text, settings, start):
    selector = parse_selector(text)
    assert dict(selector.settings) == settings
    assert (None if selector.start is None else str(selector.start)) == start
    assert str(parse_selector(str(selector))) == str(selector)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "method: expected name or name[parameter=value,...], got ''"),
        ("reloc[k=8", "method: expected name or name[parameter=value,...], got 'reloc[k=8'"),
        ("relocc", f"method: expected one of {NAMES}, got 'relocc'; did you mean 'reloc'?"),
        ("reloc[k=many]", "method reloc: k: expected a whole number or auto, got 'many'"),
        ("reloc[k=2.5]", "method reloc: k: expected a whole number or auto, got '2.5'"),
        ("reloc[revisit=1]", "method reloc: revisit: expected true or false or reading, got '1'"),
        ("reloc[relation=svm]", "method reloc: relation: expected svd, exact, nmf or reading, got 'svm'"),
        ("anneal[moves=inf]", "method anneal: moves: expected a whole number, got 'inf'"),
        ("anneal[k=8]", "method anneal: expected parameter=value with one of: moves, start; got 'k=8'"),
        ("nearest[k=1]", "method nearest: expected parameter=value with one of: no parameters; got 'k=1'"),
        ("reloc[k=1,k=2]", "method reloc: k is given twice"),
        ("anneal[start=relocc]", f"method: expected one of {NAMES}, got 'relocc'; did you mean 'reloc'?"),
    ],
)
def test_errors_of_selectors_name_the_parameter(text, problem):
    with pytest.raises(InputError) as caught:
        parse_selector(text)
    assert str(caught.value) == problem


def test_every_parameter_has_a_type_and_a_default():
    for method in METHODS.values():
        for name, spec in method.parameters().items():
            assert spec.default is not spec.empty, (method.name, name)
            assert spec.annotation is not spec.empty, (method.name, name)


def test_a_list_of_selectors_is_split_outside_brackets_and_has_no_repetitions():
    chosen = parse_selectors(["nearest,anneal[start=reloc[k=8,cooperation=topic],moves=10]", "nearest"])
    assert [selector.method.name for selector in chosen] == ["nearest", "anneal"]
    assert str(chosen[1].start) == "reloc[cooperation=topic,k=8]"
