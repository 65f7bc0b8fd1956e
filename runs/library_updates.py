"""What goes into the library: nothing that has not been verified, and nothing worse than what is there."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from relocbench.formulations.certificates.certificate import Certificate, read_certificate, write_certificate
from relocbench.formulations.certificates.verification import Verdict, cost, rounded_down, verify
from relocbench.formulations.incumbent import slack
from relocbench.instances.errors import InputError
from relocbench.instances.files.json_fields import read_object
from relocbench.instances.files.solution_file import FORMAT as SOLUTION
from relocbench.instances.files.solution_file import KNOWN as SOLUTION_FIELDS
from relocbench.instances.files.solution_file import StoredSolution, read_solution
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import write_instance
from relocbench.instances.library.library import Claim, Entry, Library, checked_name

Offer = Certificate | StoredSolution


class RefusedError(Exception):
    """What was offered does not go into the library; the message says why."""


@dataclass(frozen=True)
class Change:
    """What an offer changed.

    Attributes
    ----------
    before, after
        The line of the entry.
    better
        Some of ``homes``, ``bound``, ``claim``.
    """

    before: Entry
    after: Entry
    better: tuple[str, ...]


def add(shelf: Library, instance: Instance, certificate: Certificate, *, name: str = "", by: str = "") -> Entry:
    """Verify a certificate and put it on the shelf with its instance.

    Parameters
    ----------
    name
        What the entry is called; the instance's own name if not given.
    by
        How homes and bound were obtained; what the certificate says of it if not given.

    Raises
    ------
    RefusedError
        If the certificate proves nothing, or the instance is there already.
    """
    name = checked_name(name or instance.name)
    for there in shelf.entries.values():
        if there.name == name or there.instance == instance.hash:
            raise RefusedError(
                f"{name} is in the library already, as {there.name}; `library improve` takes better ones"
            )
    text = by or _made(certificate)
    instance = dataclasses.replace(instance, name=name)
    certificate = dataclasses.replace(certificate, made={"homes_by": text, "bound_by": text})
    entry = _verified(instance, certificate, None)
    write_instance(instance, shelf.instance_path(name))
    write_certificate(certificate, shelf.certificate_path(name))
    shelf.put(entry)
    return entry


def improve(shelf: Library, name: str, offer: Offer, by: str = "") -> Change:
    """Replace what an entry has by what is better in an offer: the homes, the proof, or both.

    Homes and proof do not depend on each other, so the better ones of both sides make one certificate, which is
    verified before it is written. The bound of a solution is a claim without a proof, and kept as that.

    Raises
    ------
    RefusedError
        If the offer is of another instance, proves nothing or claims what cannot be, or nothing in it is better.
    """
    before, instance = shelf.entry(name), shelf.read(name)
    if offer.instance != instance.hash:
        raise RefusedError(f"is not of {name}: expected the hash {instance.hash[:16]}…, got {offer.instance[:16]}")
    stored = read_certificate(shelf.certificate_path(name))
    merged, better = stored, []
    if isinstance(offer, Certificate):
        text = by or _made(offer)
        verdict = _proved(instance, offer)
        objective, claims = verdict.objective, []
        if offer.bound > Fraction(before.exact_bound):
            merged = dataclasses.replace(merged, claim=offer.claim, bits=offer.bits, proof=offer.proof)
            better.append("bound")
    else:
        text = by or f"{offer.method}, seed {offer.seed}"
        objective = cost(instance, offer.home.tolist())
        claims = [] if offer.bound is None else [Claim(offer.bound, text)]
    if objective is not None and objective < Fraction(before.exact_objective):
        merged = dataclasses.replace(merged, home=offer.home)
        better.insert(0, "homes")
    made = {
        "homes_by": text if "homes" in better else before.homes_by,
        "bound_by": text if "bound" in better else before.bound_by,
    }
    merged = dataclasses.replace(merged, made=made)
    after = _verified(instance, merged, None)
    for claim in claims:
        if claim.bound > after.objective + slack(after.objective):
            raise RefusedError(f"claims the bound {claim.bound!r}, the best homes known cost {after.objective!r}")
    after = dataclasses.replace(after, claimed=_highest_claim([before.claimed, *claims], after))
    if after.claimed is not None and after.claimed != before.claimed:
        better.append("claim")
    if not better:
        known = f"ΣD = {before.objective!r}, no assignment below {before.bound!r}"
        raise RefusedError(f"has nothing better than {name} in the library: {known}")
    if merged.home is not stored.home or merged.proof is not stored.proof:
        write_certificate(merged, shelf.certificate_path(name))
    shelf.put(after)
    return Change(before, after, tuple(better))


def check(shelf: Library, name: str, watch: Callable[[int], None] = lambda step: None) -> str:
    """Verify the certificate of an entry and compare its line; return what is wrong, or nothing."""
    entry = shelf.entry(name)
    try:
        instance, certificate = shelf.read(name), read_certificate(shelf.certificate_path(name))
        found = _verified(instance, certificate, entry.claimed, watch)
    except (InputError, RefusedError) as error:
        return str(error)
    wrong = [part for part, value in found.to_json().items() if getattr(entry, part) != getattr(found, part)]
    if wrong:
        return f"{', '.join(wrong)}: the index and the files differ"
    if entry.claimed is not None and entry.claimed != _highest_claim([entry.claimed], entry):
        return "claimed: is not between the bound and the cost"
    return ""


def stray_files(shelf: Library) -> Iterator[Path]:
    """Name what lies in the folder of a library and belongs to no entry."""
    known = {path(name) for name in shelf.entries for path in (shelf.instance_path, shelf.certificate_path)}
    yield from sorted(path for path in shelf.folder.glob("*.gz") if path not in known)


def read_offer(path: Path, instance: Instance) -> Offer:
    """Read a certificate or a solution file, whichever it is."""
    try:
        read_object(path, SOLUTION, SOLUTION_FIELDS)
    except InputError as error:
        if error.field == "format":
            return read_certificate(path)
        raise error.inside(str(path)) from error
    return read_solution(path, instance)


def _proved(instance: Instance, certificate: Certificate, watch: Callable[[int], None] = lambda step: None) -> Verdict:
    verdict = verify(instance, certificate, watch)
    if not verdict.proved:
        raise RefusedError(f"proves nothing: {verdict.reason}")
    return verdict


def _verified(
    instance: Instance,
    certificate: Certificate,
    claimed: Claim | None,
    watch: Callable[[int], None] = lambda step: None,
) -> Entry:
    """Return the line of an entry, with every number by the verifier."""
    verdict = _proved(instance, certificate, watch)
    if verdict.objective is None or verdict.bound is None:
        raise RefusedError("proves nothing")
    return Entry(
        name=instance.name,
        instance=instance.hash,
        clients=instance.n_clients,
        servers=instance.n_servers,
        topics=instance.n_topics,
        objective=float(verdict.objective),
        exact_objective=_ratio(verdict.objective),
        bound=rounded_down(verdict.bound),
        exact_bound=_ratio(verdict.bound),
        gap=None if verdict.gap is None else float(verdict.gap),
        status=verdict.status,
        homes_by=str(certificate.made.get("homes_by", "")),
        bound_by=str(certificate.made.get("bound_by", "")),
        claimed=claimed,
    )


def _highest_claim(claims: list[Claim | None], entry: Entry) -> Claim | None:
    """Return the highest claim that says more than the certificate and is not refuted by the homes."""
    if entry.status == "optimal":
        return None
    most = entry.objective + slack(entry.objective)
    open_ones = [claim for claim in claims if claim is not None and entry.bound < claim.bound <= most]
    return max(open_ones, key=lambda claim: claim.bound, default=None)


def _made(certificate: Certificate) -> str:
    return ", ".join(f"{name} {value}" for name, value in certificate.made.items()) or "not told"


def _ratio(number: Fraction) -> str:
    try:
        return f"{number.numerator}/{number.denominator}"
    except ValueError:
        raise RefusedError("has a cost of more digits than can be written") from None
