import copy
import dataclasses
import functools
import gzip
import json
import lzma
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relocbench.formulations.certificates import packed_arrays
from relocbench.formulations.certificates.certificate import (
    Certificate,
    Dual,
    SplitClient,
    SplitShare,
    SplitTopic,
    read_certificate,
    write_certificate,
)
from relocbench.formulations.certificates.packed_arrays import Packed, from_json, packed, to_json, unpacked
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation_exact import evaluate_exact
from tests.formulations.certificates.duals import Costs, certificate_for, instances_of_every_kind
from tests.instances.files.bad_files import mutated_bytes, mutated_json
from tests.samples import KINDS, random_instance


@functools.cache
def samples():
    """Instances of different kinds, each with a valid certificate and its optimal cost."""
    found = []
    for number, instance in instances_of_every_kind(2):
        rng = np.random.default_rng(number)
        certificate = certificate_for(instance, rng, 0.9999, most_steps=9)
        least, _ = Costs(instance).least()
        if len(certificate.proof) > 1:
            found.append((instance, certificate, least))
    # Short certificates are faster. Together they contain every kind of step.
    found.sort(key=lambda sample: (len(sample[1].proof), sample[0].n_clients))
    kept = found[:: max(1, len(found) // 8)]
    steps = [step for _, certificate, _ in kept for step in certificate.proof]
    assert {type(step) for step in steps} == {Dual, SplitClient, SplitTopic, SplitShare}
    for name in ("alpha", "beta", "hard"):
        assert any(any(getattr(step, name)) for step in steps if isinstance(step, Dual))
    return kept


@functools.cache
def stored(index, folder):
    path = folder / f"{index}.json"
    write_certificate(samples()[index][1], path)
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_a_written_certificate_is_read_back_unchanged(tmp_path, ending):
    for instance, certificate, _ in samples():
        path = tmp_path / f"cert.{ending}"
        write_certificate(certificate, path)
        read = read_certificate(path)
        assert read.home.tolist() == certificate.home.tolist()
        for name in ("instance", "claim", "bits", "made", "bound"):
            assert getattr(read, name) == getattr(certificate, name)
        assert verify(instance, read) == verify(instance, certificate) == verify(instance, path)
        assert verify(instance, read).proved
        again = tmp_path / f"again.{ending}"
        write_certificate(read, again)
        assert again.read_bytes() == path.read_bytes()


def test_arrays_are_packed_with_the_least_number_of_bits():
    for values, bits in (
        ([True, False] * 9, 1),
        ([False] * 9, 0),
        ([0, 0], 0),
        ([0, 127, -128], 8),
        ([128], 16),
        ([-(2**15) - 1], 24),
        ([2**31], 40),
        ([-(2**63), 2**63 - 1], 64),
        ([], 0),
    ):
        array = np.array(values, None if values else np.int64)
        short = packed(array)
        assert short.bits == bits
        back = from_json(json.loads(json.dumps(to_json(short))), "x")
        np.testing.assert_array_equal(unpacked(back, array.shape, "x"), array)
    table = np.arange(-6, 6).reshape(3, 4)
    np.testing.assert_array_equal(unpacked(packed(table), (3, 4), "x"), table)


def test_arrays_with_little_information_are_short():
    assert len(json.dumps(to_json(np.zeros(60_000, np.int64)))) < 30
    assert len(json.dumps(to_json(np.ones((400, 16), bool)))) < 60
    assert len(json.dumps(to_json(np.array([5, -7])))) < 45


def test_no_more_is_decompressed_than_expected():
    bomb = Packed(8, lzma.compress(bytes(1 << 24), lzma.FORMAT_RAW, filters=packed_arrays._filters(10)))
    tracemalloc.start()
    with pytest.raises(InputError, match=r"x\.data: expected 10 bytes when decompressed, got more or less"):
        unpacked(bomb, (10,), "x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (5, "x: expected an object, got 5"),
        ({"bits": 8}, "x.data: is missing"),
        ({"bits": 9, "data": ""}, "x.bits: expected 0, 1 or whole bytes up to 64, got 9"),
        ({"bits": 72, "data": ""}, "x.bits: expected 0, 1 or whole bytes up to 64, got 72"),
        ({"bits": 8, "data": "?"}, "x.data: expected base64, got '?'"),
        ({"bits": 8, "data": "ä"}, "x.data: expected base64, got 'ä'"),
    ],
)
def test_a_wrong_packed_array_is_refused(value, problem):
    with pytest.raises(InputError) as caught:
        from_json(value, "x")
    assert str(caught.value) == problem


def test_incomplete_compressed_data_is_refused():
    good = packed(np.array([1, -300])).data
    for data in (b"", b"xz", good[:-1], good[:3], good + b"3", packed(np.array([1])).data, good[::-1]):
        with pytest.raises(InputError, match=r"x\.data: "):
            unpacked(Packed(16, data), (2,), "x")
    with pytest.raises(InputError, match="x: expected at most 1024 MiB, got 1048576"):
        unpacked(Packed(8, good), (1 << 20, 1 << 20), "x")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"format": "relocbench-solution/1"},
            'format: expected "relocbench-certificate/1" or "relocbench-certificate/2" or "relocbench-certificate/3"',
        ),
        ({"claim": 1.5}, "claim: expected a whole number of at most 200 bits, got 1.5"),
        ({"claim": 1 << 200}, "claim: expected a whole number of at most 200 bits, got 160693"),
        ({"claim": True}, "claim: expected a whole number of at most 200 bits, got True"),
        ({"bits": -2201}, "bits: expected a number from -2200 to 2200, got -2201"),
        ({"bits": 2201}, "bits: expected a number from -2200 to 2200, got 2201"),
        ({"delay_cap": 1024}, "delay_cap: expected a number from -1074 to 1023, got 1024"),
        ({"delay_cap": 0.5}, "delay_cap: expected a whole number"),
        ({"cloud_cap": -1075}, "cloud_cap: expected a number from -1074 to 1023, got -1075"),
        ({"home": [0, 2**31]}, "home[1]: expected the index of a server, got 2147483648"),
        ({"made": []}, "made: expected an object, got []"),
        ({"made": {"by": []}}, "made: expected texts and numbers, got []"),
        ({"more": 1}, "more: unknown field"),
        (
            {"proof": [{"step": "guess"}]},
            "proof[0].step: expected dual, split-client, split-topic or split-share, got 'guess'",
        ),
        ({"proof": [7]}, "proof[0]: expected an object, got 7"),
        ({"proof": [{"step": "split-topic", "topic": 0}]}, "proof[0].server: is missing"),
        ({"proof": [{"step": "dual", "bits": 1, "multiplier_bits": 1}]}, "proof[0].fix: is missing"),
        ({"proof": [{"step": "dual", "fix": 1}]}, "proof[0].fix: expected true or false, got 1"),
        ({"proof": [{"step": "split-share", "server": 0, "share": 0.5}]}, "proof[0].share: expected a whole number"),
        ({"proof": [{}] * 100_001}, "proof: expected at most 100000 steps, got 100001"),
    ],
)
def test_a_wrong_field_is_refused_by_name(tmp_path, change, problem):
    path = tmp_path / "cert.json"
    path.write_text(json.dumps(json.loads(stored(0, tmp_path)) | change))
    with pytest.raises(InputError) as caught:
        read_certificate(path)
    assert str(caught.value).startswith(f"{path}: {problem}")
    assert not verify(samples()[0][0], path).proved


def test_other_file_names_are_refused(tmp_path):
    path = tmp_path / "cert.parquet"
    with pytest.raises(InputError, match="for a certificate"):
        write_certificate(samples()[0][1], path)
    with pytest.raises(InputError, match="for a certificate"):
        read_certificate(path)


# A file that was tampered with is refused with a reason of one line, or its claim is still true.

ARRAYS = ("active", "messages", "shares")


def unpack_json(array, size=0):
    """The numbers of a packed array; ``size`` zeros if the array has no entries of its own."""
    raw = from_json(array, "x")
    if raw.bits == 0:
        return np.zeros(size, np.int64)
    content = lzma.decompress(raw.data, lzma.FORMAT_RAW, filters=packed_arrays._filters(1 << 20))
    return unpacked(
        packed_arrays.Packed(raw.bits, packed_arrays._compressed(content)), (8 * len(content) // raw.bits,), "x"
    )


@st.composite
def tampered(draw, content):
    """Up to three changes that leave the file readable: to the numbers, the steps or the claim."""
    tree = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        steps = tree["proof"]
        what = draw(
            st.sampled_from(
                [
                    "claim",
                    "numbers",
                    "numbers",
                    "numbers",
                    "numbers",
                    "multiplier",
                    "units",
                    "steps",
                    "home",
                    "truth",
                    "swap",
                ]
            )
        )
        duals = [step for step in steps if step["step"] == "dual"]
        if what == "claim":
            tree["claim"] += draw(
                st.sampled_from(
                    [1, 1 << 10, 1 << 24, 1 << 32, 1 << 38, tree["claim"] // 100, tree["claim"], -(1 << 30)]
                )
            )
        elif what == "home":
            tree["home"][draw(st.integers(0, len(tree["home"]) - 1))] = draw(st.integers(-1, 4))
        elif what == "steps" and steps:
            place = draw(st.integers(0, len(steps) - 1))
            how = draw(st.sampled_from(["drop", "repeat", "move", "split"]))
            if how == "split" and "client" in steps[place]:
                steps[place]["servers"] = draw(st.lists(st.integers(-1, 4), max_size=4))
            elif how == "split" and "share" in steps[place]:
                steps[place]["share"] = draw(st.sampled_from([0, 1, 512, 1023, 1024]) | st.integers(1, 1023))
            elif how == "split" and "topic" in steps[place]:
                steps[place]["server"] = draw(st.integers(-1, 4))
            elif how == "repeat":
                steps.insert(place, copy.deepcopy(steps[draw(st.integers(0, len(steps) - 1))]))
            else:
                step = steps.pop(place)
                if how == "move":
                    steps.insert(draw(st.integers(0, len(steps))), step)
        elif duals:
            change_dual(draw, draw(st.sampled_from(duals)), what)
    return json.dumps(tree).encode()


def change_dual(draw, dual, what):
    if what == "multiplier":
        prices = dual[draw(st.sampled_from(["alpha", "beta"]))]
        place = draw(st.integers(0, len(prices) - 1))
        prices[place] = draw(
            st.sampled_from([0, -1, 1, prices[place] // 2, prices[place] * 2, prices[place] + 1, 1 << 199, 1 << 40])
        )
    elif what == "units":
        name = draw(st.sampled_from(["bits", "multiplier_bits"]))
        dual[name] = draw(st.sampled_from([0, dual[name] - 1, dual[name] + 1, 200, 63]))
    elif what == "truth":
        place = draw(st.integers(-1, len(dual["hard"]) - 1))
        if place < 0:
            dual["fix"] = not dual["fix"]
        else:
            dual["hard"][place] = draw(st.sampled_from([1 - dual["hard"][place]] * 5 + [2]))
    elif what == "swap":
        first, second = (draw(st.sampled_from(ARRAYS)) for _ in range(2))
        dual[first], dual[second] = dual[second], dual[first]
    else:
        name = draw(st.sampled_from(ARRAYS))
        dual[name] = to_json(changed_numbers(draw, unpack_json(dual[name], draw(st.integers(0, 20)))))


def changed_numbers(draw, array):
    flat = array.copy()
    how = draw(st.sampled_from(["one", "one", "all", "order", "length"]))
    if how == "one" and flat.size:
        place = draw(st.integers(0, flat.size - 1))
        flat[place] = draw(
            st.sampled_from([0, 1, -1, int(flat[place]) + 1, int(flat[place]) // 2, 1 << 62, -(1 << 63), 1 << 33])
        )
    elif how == "all":
        flat = (
            flat // draw(st.sampled_from([-1, 2, 3]))
            if draw(st.booleans())
            else flat + draw(st.sampled_from([1, 1 << 20]))
        )
    elif how == "order":
        flat = flat[::-1]
    elif how == "length":
        return np.resize(flat, max(0, flat.size + draw(st.sampled_from([-1, 1]))))
    return flat


def check_tampering(files, tmp_path, different, name="tampered.json"):
    """Verify a number of different files; return how many are still proofs, and how many there were."""
    seen, proved = set(), []
    path = tmp_path / name

    @settings(max_examples=different * 3 // 2)
    @given(st.integers(0, len(samples()) - 1).flatmap(lambda index: files(index).map(lambda file: (index, file))))
    def check(drawn):
        index, content = drawn
        if content in seen:
            return
        seen.add(content)
        path.write_bytes(content)
        instance, _, least = samples()[index]
        verdict = verify(instance, path)
        assert (verdict.reason == "") == verdict.proved
        assert len(verdict.reason.splitlines()) <= 1
        if verdict.proved:
            proved.append(content)
            assert verdict.bound <= least
            assert verdict.objective == evaluate_exact(instance, read_certificate(path).home).objective

    check()
    assert len(seen) >= different
    return len(proved), len(seen)


@pytest.mark.slow
def test_no_change_of_numbers_or_steps_proves_a_false_claim(tmp_path):
    contents = [json.loads(stored(index, tmp_path)) for index in range(len(samples()))]
    proved, seen = check_tampering(lambda index: tampered(contents[index]), tmp_path, 1300)
    assert 0.05 * seen < proved < 0.9 * seen  # many changes keep the proof valid, but not nearly all


@pytest.mark.slow
def test_no_change_to_the_json_tree_proves_a_false_claim(tmp_path):
    contents = [json.loads(stored(index, tmp_path)) for index in range(len(samples()))]
    check_tampering(lambda index: mutated_json(contents[index]), tmp_path, 400)


@pytest.mark.parametrize("name", ["tampered.json", "tampered.json.gz"])
def test_no_change_to_the_bytes_proves_a_false_claim(tmp_path, name):
    contents = [stored(index, tmp_path) for index in range(len(samples()))]
    if name.endswith(".gz"):
        contents = [gzip.compress(content, mtime=0) for content in contents]
    check_tampering(lambda index: mutated_bytes(contents[index]), tmp_path, 300, name)


def test_claims_just_above_the_optimum_are_refused():
    for instance, certificate, least in samples():
        raised = dataclasses.replace(certificate, claim=int(least * (1 << 60)) + 1, bits=60)
        assert not verify(instance, raised).proved


def test_a_certificate_proves_nothing_for_another_instance():
    for seed in range(len(KINDS)):
        assert "expected the hash" in verify(random_instance(seed), samples()[0][1]).reason


def test_the_bound_is_an_exact_number():
    certificate = Certificate(instance="", home=np.zeros(1, np.int32), claim=3, bits=2, proof=())
    assert certificate.bound == Fraction(3, 4)
