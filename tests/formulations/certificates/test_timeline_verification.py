"""Certificates of timelines: what is accepted is true, and a second verifier in rationals says the same."""

import base64
import copy
import dataclasses
import functools
import json
import lzma
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.certificates.packed_arrays import from_json, packed, unpacked
from relocbench.formulations.certificates.packed_arrays import to_json as to_json_array
from relocbench.formulations.certificates.potentials import copied_spools, present_in_both
from relocbench.formulations.certificates.timeline_certificate import (
    read_timeline_certificate,
    write_timeline_certificate,
)
from relocbench.formulations.certificates.timeline_verification import exact_schedule_cost, verify_timeline
from relocbench.formulations.timeline import enumeration
from relocbench.instances.files.instance_json import to_json
from relocbench.runs.timeline.certify_timeline import certify_timeline
from tests.formulations.certificates import second_timeline_verifier as second
from tests.timelines import random_homes, random_timeline, tiny_timeline

# Timelines with potentials that matter, in several kinds.
SEEDS = (4, 5, 9, 12, 16, 19, 21, 22)


@functools.cache
def sample(seed):
    """Return a timeline, the cost of its best schedule, and a certificate with potentials and shares of spools."""
    timeline = tiny_timeline(seed)
    least = enumeration.solve(timeline)
    homes = [home.tolist() for home in least.homes]
    certificate = certify_timeline(timeline, schedule=homes, time_limit=0.5).certificate
    return timeline, exact_schedule_cost(timeline, homes), certificate


def parsed(timeline):
    """Return the arguments of the second verifier."""
    prices = dataclasses.astuple(timeline.prices)
    epochs = [
        (epoch.length, epoch.clients.tolist(), epoch.topics.tolist(), json.loads(to_json(epoch.instance)))
        for epoch in timeline.epochs()
    ]
    return timeline.hash, prices, epochs


def content_of(certificate, tmp_path):
    write_timeline_certificate(certificate, tmp_path / "sample.json")
    return json.loads((tmp_path / "sample.json").read_text())


@pytest.mark.parametrize("seed", range(16))
def test_the_cost_of_a_schedule_is_exact(seed):
    timeline = random_timeline(seed)
    homes = [home.tolist() for home in random_homes(timeline, seed)]
    exact = exact_schedule_cost(timeline, homes)
    assert exact == second.schedule_cost(*parsed(timeline)[1:], homes)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_second_verifier_agrees(seed, tmp_path):
    timeline, least, certificate = sample(seed)
    verdict = verify_timeline(timeline, certificate)
    assert verdict.proved, verdict.reason
    cost, bound = second.verify(*parsed(timeline), content_of(certificate, tmp_path))
    assert (verdict.objective, verdict.bound) == (cost, bound)
    assert bound <= least == cost


def test_the_samples_have_potentials_that_the_proof_needs():
    needed = 0
    for seed in SEEDS:
        timeline, _, certificate = sample(seed)
        without = [dataclasses.replace(epoch, potentials=None, spool_shares=None) for epoch in certificate.epochs]
        verdict = verify_timeline(timeline, dataclasses.replace(certificate, epochs=tuple(without)))
        needed += not verdict.proved
    assert needed >= 4


@pytest.mark.parametrize("seed", SEEDS)
def test_potentials_above_the_price_are_refused(seed):
    timeline, _, certificate = sample(seed)
    first, second_epoch = list(timeline.epochs())[:2]
    both, _ = present_in_both(first, second_epoch)
    unit = Fraction(2) ** certificate.potential_bits
    allowed = int(Fraction(timeline.prices.handover) * unit)
    values = np.zeros((len(both), timeline.n_servers), np.int64)
    if not len(both) or allowed > 1 << 39:
        pytest.skip("no client is in both epochs")
    for above, reason in ((0, "claim"), (1, "epochs[0]: potentials: expected no two numbers of a client that differ")):
        values[0] = [-5, *[allowed + above - 5] * (timeline.n_servers - 1)]
        changed = dataclasses.replace(certificate.epochs[0], potentials=packed(values))
        verdict = verify_timeline(timeline, dataclasses.replace(certificate, epochs=(changed, *certificate.epochs[1:])))
        assert verdict.proved or reason in verdict.reason, verdict.reason
        assert not (above and verdict.proved)


def test_shares_of_spools_are_limited_by_the_price_and_count_in_both_epochs(tmp_path):
    checked = 0
    for seed in range(40):
        timeline = tiny_timeline(seed)
        first, later = list(timeline.epochs())[:2]
        client, topic = copied_spools(first, later)
        if not len(client) or not timeline.prices.spool:
            continue
        checked += 1
        certificate = certify_timeline(timeline, schedule=random_homes(timeline, 1), time_limit=0.2).certificate
        unit = Fraction(2) ** certificate.potential_bits
        shares = np.zeros((len(client), timeline.n_servers), np.int64)
        allowed = int(Fraction(timeline.prices.spool) * Fraction(float(later.instance.spool[topic[0]])) * unit)
        for above in (0, 1):
            shares[0, 0] = allowed + above
            changed = dataclasses.replace(certificate.epochs[1], spool_shares=packed(shares))
            both = dataclasses.replace(
                certificate, epochs=(certificate.epochs[0], changed, *certificate.epochs[2:]), claim=1, bits=60
            )
            verdict = verify_timeline(timeline, both)
            try:
                second.verify(*parsed(timeline), content_of(both, tmp_path))
                agreed = True
            except second.Rejected:
                agreed = False
            assert verdict.proved == agreed, verdict.reason
            assert not above or "spool_shares: expected no more than the price" in verdict.reason
        if checked == 8:
            return
    pytest.fail("too few timelines copy spools")


@pytest.mark.parametrize(
    ("cheaper", "reason"),
    [
        ({"handover": 0.0}, "potentials: expected no two numbers of a client that differ"),
        ({"spool": 0.0}, "spool_shares: expected no more than the price"),
        ({"publication_period": 20.0}, "claim"),
    ],
)
def test_a_proof_for_higher_costs_proves_nothing_false(cheaper, reason):
    """The certificate of the same timeline with higher prices, sent with the hash of the cheaper one."""
    refused = 0
    for seed in (*SEEDS, 2, 7):
        timeline, _, certificate = sample(seed)
        cheap = timeline.with_prices(**cheaper)
        least = exact_schedule_cost(cheap, [home.tolist() for home in enumeration.solve(cheap).homes])
        assert cheap.hash == timeline.hash or not verify_timeline(cheap, certificate).proved
        verdict = verify_timeline(cheap, dataclasses.replace(certificate, timeline=cheap.hash, homes=None))
        refused += reason in verdict.reason
        assert not verdict.proved or verdict.bound <= least
    assert refused


def with_claim(content, factor):
    """Raise all claims of a certificate by a factor."""
    content = copy.deepcopy(content)
    for part in (content, *content["epochs"]):
        part["claim"] = int(part["claim"] * factor) + 1
    return content


@pytest.mark.parametrize("seed", SEEDS)
def test_no_changed_certificate_proves_a_false_claim(seed, tmp_path):
    """Random changes of the file, of its arrays and of its claims: what is still accepted is at most the optimum."""
    timeline, least, certificate = sample(seed)
    content = content_of(certificate, tmp_path)
    content.pop("homes")  # otherwise a claim above their cost is refused without looking at the proof
    raised = with_claim(content, 1.3)
    rng = np.random.default_rng(seed)
    path = tmp_path / "changed.json"
    accepted = 0
    for number in range(60):
        base = raised if number % 3 == 2 else content
        if number % 3 == 1:
            changed = _with_changed_array(base, rng)
        else:
            changed = _with_changed_node(base, rng) if number % 4 == 3 else _with_changed_number(base, rng)
        path.write_text(json.dumps(changed))
        verdict = verify_timeline(timeline, path, time_limit=10)
        assert "\n" not in verdict.reason
        if verdict.proved:
            accepted += 1
            assert verdict.bound <= least
    for _ in range(10):
        damaged = bytearray(json.dumps(content).encode())
        for place in rng.integers(len(damaged), size=3):
            damaged[place] = int(rng.integers(256))
        path.write_bytes(bytes(damaged))
        verdict = verify_timeline(timeline, path, time_limit=10)
        assert "\n" not in verdict.reason
        assert not verdict.proved or verdict.bound <= least
    assert accepted


def _with_changed_number(content, rng):
    changed = copy.deepcopy(content)
    epoch = changed["epochs"][rng.integers(len(changed["epochs"]))]
    name = rng.choice(["claim", "bits", "potential_bits"])
    where = changed if name == "potential_bits" or rng.random() < 0.3 else epoch
    where[str(name)] += int(rng.choice([-1, 1, 2])) * (int(rng.integers(1, 1 << 20)) if name == "claim" else 1)
    if rng.random() < 0.3:  # make the claim of the whole follow, so that it is the epoch's proof that is checked
        changed["claim"] += int(rng.integers(1 << 30))
    return changed


def _with_changed_array(content, rng):
    """Change some numbers of a packed array."""
    changed = copy.deepcopy(content)
    arrays = [epoch["potentials"] for epoch in changed["epochs"] if "potentials" in epoch] * 3
    arrays += [step[name] for epoch in changed["epochs"] for step in epoch["proof"] for name in ("messages", "shares")]
    array = arrays[rng.integers(len(arrays))]
    if array["bits"] >= 8:
        dictionary = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
        raw = lzma.decompress(base64.b64decode(array["data"]), lzma.FORMAT_RAW, filters=dictionary)
        values = unpacked(from_json(array, ""), (8 * len(raw) // array["bits"],), "")
        for place in rng.integers(len(values), size=3):
            values[place] = values[place] * int(rng.choice([-1, 0, 2])) + int(rng.integers(-3, 4))
        array.update(to_json_array(packed(values)))
    return changed


def _with_changed_node(content, rng):
    """Delete or replace a random part of the file."""
    changed = copy.deepcopy(content)
    node = changed
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = keys[rng.integers(len(keys))]
        if not isinstance(node[key], dict | list) or not node[key] or rng.random() < 0.2:
            break
        node = node[key]
    if rng.random() < 0.3:
        del node[key]
    else:
        node[key] = [None, True, -1, 0.5, "x", [], {}, 10**70][rng.integers(8)]
    return changed


def test_a_raised_claim_is_refused_by_both_verifiers(tmp_path):
    for seed in SEEDS:
        timeline, least, certificate = sample(seed)
        content = content_of(certificate, tmp_path)
        content.pop("homes")
        bound = float(certificate.bound)
        raised = with_claim(content, 1.05 * float(least) / bound)
        (tmp_path / "raised.json").write_text(json.dumps(raised))
        assert not verify_timeline(timeline, tmp_path / "raised.json").proved
        with pytest.raises(second.Rejected):
            second.verify(*parsed(timeline), raised)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda c: c.update(timeline="00"), "timeline: expected the hash"),
        (lambda c: c["epochs"].pop(), "epochs: expected 3 epochs, got 2"),
        (lambda c: c["homes"].pop(), "homes: expected homes for 3 epochs, got 2"),
        (lambda c: c["homes"][1].pop(), "homes[1]: expected one server for each of"),
        (lambda c: c["homes"][1].__setitem__(0, 99), "homes[1][0]: expected a server from 0 to"),
        (lambda c: c["homes"].__setitem__(1, 5), "homes[1]: expected a list of servers, got 5"),
        (lambda c: c["homes"][1].__setitem__(0, "a"), "homes[1][0]: expected a whole number"),
        (lambda c: c.update(claim=c["claim"] * 10**6), "claim: is above what the schedule of the certificate costs"),
        (lambda c: c.update(claim=1.5), "claim: expected a whole number"),
        (lambda c: c["epochs"][0].update(claim=-(10**30)), "claim: is above the sum of what is claimed for the epochs"),
        (lambda c: c["epochs"][0].update(proof=[]), "epochs[0]: claim: is not proved"),
        (lambda c: c["epochs"][0].update(potential={}), "epochs[0].potential: unknown field"),
        (lambda c: c["epochs"][0].update(delay_cap=5000), "epochs[0].delay_cap: expected a number from"),
        (lambda c: c["epochs"][-1].update(potentials=c["epochs"][0]["potentials"]), "expected none in the last epoch"),
        (lambda c: c["epochs"][0].update(spool_shares=c["epochs"][0]["potentials"]), "expected none in the first"),
        (lambda c: c["epochs"][0]["proof"][0].update(step="guess"), "epochs[0].proof[0].step: expected dual"),
        (lambda c: c.update(format="relocbench-certificate/1"), "format: expected"),
    ],
)
def test_a_wrong_certificate_is_refused_in_one_line(change, reason, tmp_path):
    timeline, _, certificate = sample(12)
    content = content_of(certificate, tmp_path)
    assert verify_timeline(timeline, certificate).proved
    change(content)
    (tmp_path / "wrong.json").write_text(json.dumps(content))
    verdict = verify_timeline(timeline, tmp_path / "wrong.json")
    assert not verdict.proved
    assert verdict.status == "error"
    assert reason in verdict.reason
    assert "\n" not in verdict.reason


def test_the_budget_limits_time_memory_and_steps():
    timeline, _, certificate = sample(12)
    for limit, reason in (("time_limit", "time limit"), ("memory_limit", "memory limit"), ("max_steps", "3 steps")):
        assert reason in verify_timeline(timeline, certificate, **{limit: 0}).reason


def test_a_file_is_read_as_it_was_written(tmp_path):
    timeline, _, certificate = sample(12)
    for name in ("cert.json", "cert.json.gz"):
        write_timeline_certificate(certificate, tmp_path / name)
        again = read_timeline_certificate(tmp_path / name)
        assert verify_timeline(timeline, again).bound == certificate.bound
        assert again.made == certificate.made
    assert "cannot be read" in verify_timeline(timeline, tmp_path / "none.json").reason
