import random

import pytest

from benchmarks.trials.files import MEMORY, TARGETS, judged, originals_of, read
from benchmarks.trials.mutations import mutated_bytes, mutated_json
from benchmarks.trials.sandbox import Answer

INSTANCE, CERTIFICATE = (
    next(target for target in TARGETS if target.name == f"{name}.json") for name in ("instance", "certificate")
)
REFUSAL = "relocbench: /tmp/instance.json: servers.x[0]: expected a number, got None\n"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer((0, "{}", "")), "right"),
        (Answer((2, "", REFUSAL)), "refused"),
        (Answer((2, "", REFUSAL), peak=MEMORY + 1), "wrong"),
        (Answer((0, "{}", "a warning\n")), "wrong"),
        (Answer((1, "", REFUSAL)), "wrong"),
        (Answer((2, "", "relocbench: expected a number\n")), "wrong"),
        (Answer((2, "", REFUSAL * 2)), "wrong"),
        (Answer((2, "", "Traceback of instance.json\n")), "wrong"),
        (Answer(error="ValueError"), "crashed"),
        (Answer(error="did not end", hung=True), "hung"),
    ],
)
def test_a_file_is_read_or_refused_in_one_line(answer, verdict):
    assert judged(INSTANCE, answer)[0] == verdict


def test_a_false_claim_is_no_wrong_input():
    assert judged(CERTIFICATE, Answer((1, "", "relocbench: cert.json: the claim is not proved\n"))) == ("refused", "")


def test_the_files_that_are_damaged_are_valid(tmp_path):
    originals = originals_of(str(tmp_path / "originals"))
    for target in TARGETS:
        folder = tmp_path / target.name
        folder.mkdir()
        (folder / target.name).write_bytes(originals[target.name])
        (folder / "valid-instance.json").write_bytes(originals["instance.json"])
        code, _, errors = read(target, str(folder))
        assert (code, errors) == (0, ""), target.name


def test_a_mutation_depends_on_its_seed_only():
    text = b'{"a": [1, 2.5, "x"], "b": {"c": null}}'
    for change in (mutated_bytes, mutated_json):
        found = [change(text, random.Random(seed)) for seed in range(30)]
        assert found == [change(text, random.Random(seed)) for seed in range(30)]
        assert len(set(found)) > 15
