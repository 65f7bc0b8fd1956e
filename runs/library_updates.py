"""Changes of the library: only verified certificates enter it, and no entry becomes worse.

The bound of an entry is the highest one that its own certificate or that of an easier entry proves. So each change also
carries bounds: those of easier entries to the changed entry, and its bound to harder entries.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from relocbench.formulations.certificates.certificate import Certificate, read_certificate, write_certificate
from relocbench.formulations.certificates.verification import Verdict, cost, rounded_down, verify
from relocbench.formulations.incumbent import slack
from relocbench.instances.easier import is_easier
from relocbench.instances.errors import InputError
from relocbench.instances.files.homes_file import is_certificate, read_solution
from relocbench.instances.files.solution_file import StoredSolution
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import write_instance
from relocbench.instances.library.library import ENTRY_FIELDS, Claim, Entry, Library, checked_name

# What may improve an entry: a certificate, or a solution, whose bound is not proved.
Offer = Certificate | StoredSolution
# Called with the number of each step of a proof that is verified.
OnStep = Callable[[int], None]


class RefusedError(Exception):
    """The library does not accept a certificate or solution; the message is the reason."""


class _ChangedError(Exception):
    """Another process has changed the entry since it was read."""


@dataclass(frozen=True)
class Change:
    """How an entry was improved.

    Attributes
    ----------
    before, after
        The entry before and after the change.
    better
        What was improved: some of ``homes``, ``bound`` and ``claim``.
    """

    before: Entry
    after: Entry
    better: tuple[str, ...]


def add(library: Library, instance: Instance, certificate: Certificate, *, name: str = "", by: str = "") -> Entry:
    """Verify a certificate and add it to the library together with its instance.

    If an easier entry has a higher bound, the new entry gets that bound, after its certificate is verified.

    Parameters
    ----------
    library
        The library, which is changed.
    instance, certificate
        The new entry.
    name
        The name of the entry; by default that of the instance.
    by
        How homes and bound were obtained; by default what the certificate says.

    Returns
    -------
    Entry
        The new entry.

    Raises
    ------
    InputError
        If the name has the wrong form.
    RefusedError
        If the certificate does not prove its claim, or the library already contains the name or the instance.
    """
    name = checked_name(name or instance.name)
    _refuse_known(library.entries, name, instance)
    library.check_writable()
    origin = by or _origin(certificate)
    instance = dataclasses.replace(instance, name=name)
    certificate = dataclasses.replace(certificate, made={"homes_by": origin, "bound_by": origin})
    own = _verified_entry(instance, certificate, None)
    while True:
        entry = _with_highest_bound(library, own, instance)

        def write(entries: Mapping[str, Entry], entry: Entry = entry) -> list[Entry]:
            _refuse_known(entries, name, instance)
            if _easier_entry(library, entry, instance) is not None:
                raise _ChangedError
            changed = [entry, *_raised(library, entry, instance)]
            write_instance(instance, library.instance_path(name))
            write_certificate(certificate, library.certificate_path(name))
            return changed

        with contextlib.suppress(_ChangedError):
            library.change(write)
            return entry


def _refuse_known(entries: Mapping[str, Entry], name: str, instance: Instance) -> None:
    for known in entries.values():
        if known.name == name or known.instance == instance.hash:
            raise RefusedError(
                f"{name} is already in the library, as {known.name}; use `library improve` for a better certificate"
            )


def improve(library: Library, name: str, offer: Offer, by: str = "") -> Change:
    """Improve an entry by the homes, the bound or both of a certificate or solution.

    The homes and the proof of a certificate do not depend on each other. So the better homes and the better proof are
    combined into one certificate, which is verified before it is written. The bound of a solution has no proof. It is
    stored as a claim. If another process changes the entry meanwhile, the offer is combined with what is then in the
    library, so that no improvement is lost. A better bound is carried to all harder entries.

    Parameters
    ----------
    library
        The library, which is changed.
    name
        The name of the entry.
    offer
        The certificate or solution.
    by
        How it was obtained; by default what the offer says.

    Returns
    -------
    Change
        What was improved.

    Raises
    ------
    RefusedError
        If the offer belongs to another instance, does not prove its claim, claims an impossible bound, or improves
        nothing.
    """
    instance = library.read(name)
    if offer.instance != instance.hash:
        raise RefusedError(
            f"is for another instance: expected the hash {instance.hash[:16]}…, got {offer.instance[:16]}"
        )
    library.check_writable()
    if isinstance(offer, Certificate):
        objective = _proved(instance, offer).objective
    else:
        objective = cost(instance, offer.home.tolist())
    while True:
        with contextlib.suppress(_ChangedError):
            return _combine(library, name, instance, offer, objective, by)


def _combine(
    library: Library, name: str, instance: Instance, offer: Offer, objective: Fraction | None, by: str
) -> Change:
    """Combine an offer, whose homes have the given cost, with an entry, and write the result if it is better."""
    before, stored = library.entry(name), read_certificate(library.certificate_path(name))
    merged, better = stored, []
    if isinstance(offer, Certificate):
        origin, claims = by or _origin(offer), []
        if offer.bound > Fraction(before.exact_bound):
            names = ("claim", "bits", "proof", "delay_cap", "cloud_cap")
            merged = dataclasses.replace(merged, **{name: getattr(offer, name) for name in names})
            better.append("bound")
    else:
        origin = by or offer.origin or "not stated"
        claims = [] if offer.bound is None else [Claim(offer.bound, origin)]
    if objective is not None and objective < Fraction(before.exact_objective):
        merged = dataclasses.replace(merged, home=offer.home)
        better.insert(0, "homes")
    made = {
        "homes_by": origin if "homes" in better else before.homes_by,
        # The bound of the entry may be that of an easier one.
        "bound_by": origin if "bound" in better else str(stored.made.get("bound_by", "")),
    }
    merged = dataclasses.replace(merged, made=made)
    after = _with_highest_bound(library, _verified_entry(instance, merged, None), instance)
    for claim in claims:
        if claim.bound > after.objective + slack(after.objective):
            raise RefusedError(f"claims the bound {claim.bound!r}, but the best homes known cost {after.objective!r}")
    after = dataclasses.replace(after, claimed=_highest_claim([before.claimed, *claims], after))
    if after.claimed is not None and after.claimed != before.claimed:
        better.append("claim")
    if not better:
        known = f"ΣD = {before.objective!r}, lower bound {before.bound!r}"
        raise RefusedError(f"improves nothing: the library has {name} with {known}")

    def write(entries: Mapping[str, Entry]) -> list[Entry]:
        if entries.get(name) != before or _easier_entry(library, after, instance) is not None:
            raise _ChangedError
        changed = [after, *_raised(library, after, instance)]
        if merged.home is not stored.home or merged.proof is not stored.proof:
            write_certificate(merged, library.certificate_path(name))
        return changed

    library.change(write)
    return Change(before, after, tuple(better))


def check(library: Library, name: str, on_step: OnStep = lambda step: None) -> str:
    """Verify the certificate of an entry and compare the result with the index.

    If the bound is that of an easier entry, the certificate of that entry is verified, too.

    Parameters
    ----------
    library, name
        The library and the name of the entry.
    on_step
        Called with the number of each step of the proof.

    Returns
    -------
    str
        What is wrong; empty if everything is correct.
    """
    entry = library.entry(name)
    try:
        instance, certificate = library.read(name), read_certificate(library.certificate_path(name))
        found = _verified_entry(instance, certificate, entry.claimed, on_step)
        if entry.bound_from is not None:
            found = _with_bound_from(library, found, instance, entry.bound_from, on_step)
        wrong = [field for field in ENTRY_FIELDS if getattr(entry, field) != getattr(found, field)]
        if wrong:
            return f"{', '.join(wrong)}: the index differs from the files"
        if (easier := _easier_entry(library, entry, instance)) is not None:
            return f"bound: that of {easier} is higher and can be carried, because its instance is easier"
    except (InputError, RefusedError) as error:
        return str(error)
    if entry.claimed is not None and entry.claimed != _highest_claim([entry.claimed], entry):
        return "claimed: expected a bound between the proved bound and the objective"
    return ""


def stray_files(library: Library) -> Iterator[Path]:
    """Find files in the folder of a library that belong to no entry.

    Parameters
    ----------
    library
        The library.

    Yields
    ------
    Path
        The files, sorted.
    """
    known = {path(name) for name in library.entries for path in (library.instance_path, library.certificate_path)}
    yield from sorted(path for path in library.folder.glob("*.gz") if path not in known)


def read_offer(path: Path, instance: Instance) -> Offer:
    """Read a file that is either a certificate or contains homes in another form.

    Parameters
    ----------
    path
        The file.
    instance
        The instance of the homes.

    Returns
    -------
    Certificate or StoredSolution
        The content of the file. A certificate may belong to another instance.

    Raises
    ------
    InputError
        If the file is neither, or has homes for another instance.
    """
    return read_certificate(path) if is_certificate(path) else read_solution(path, instance)


def _proved(instance: Instance, certificate: Certificate, on_step: OnStep = lambda step: None) -> Verdict:
    # What is in the library, or shall be, may take long; the user can interrupt it.
    verdict = verify(instance, certificate, on_step, time_limit=math.inf)
    if not verdict.proved:
        raise RefusedError(f"proves nothing: {verdict.reason}")
    return verdict


def _verified_entry(
    instance: Instance,
    certificate: Certificate,
    claimed: Claim | None,
    on_step: OnStep = lambda step: None,
) -> Entry:
    """Return an entry in which the verifier has computed every number."""
    verdict = _proved(instance, certificate, on_step)
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
        **_bound_fields(verdict.objective, verdict.bound),
        homes_by=str(certificate.made.get("homes_by", "")),
        bound_by=str(certificate.made.get("bound_by", "")),
        claimed=claimed,
    )


def _bound_fields(objective: Fraction, bound: Fraction) -> dict[str, Any]:
    verdict = Verdict(True, "", objective, bound)
    return {
        "bound": rounded_down(bound),
        "exact_bound": _ratio(bound),
        "gap": None if verdict.gap is None else float(verdict.gap),
        "status": verdict.status,
    }


def _easier_entry(library: Library, entry: Entry, instance: Instance) -> str | None:
    """Return the easier entry with the highest bound, if the index states one above that of the given entry."""
    # A carried bound is also that of the entry that it comes from, which is easier, too.
    higher = [
        one
        for one in library.entries.values()
        if one.bound_from is None
        and _sizes(one) == _sizes(entry)
        and Fraction(one.exact_bound) > Fraction(entry.exact_bound)
        and is_easier(library.read(one.name), instance)
    ]
    return max(higher, key=lambda one: Fraction(one.exact_bound)).name if higher else None


def _with_highest_bound(library: Library, entry: Entry, instance: Instance) -> Entry:
    """Return the entry with the bound of an easier one, after verifying it, if the index states a higher one."""
    easier = _easier_entry(library, entry, instance)
    if easier is None:
        return entry
    found = _with_bound_from(library, entry, instance, easier)
    if Fraction(found.exact_bound) < Fraction(library.entry(easier).exact_bound):
        raise RefusedError(f"the certificate of {easier} does not prove the bound that the index states")
    return found


def _with_bound_from(
    library: Library, entry: Entry, instance: Instance, name: str, on_step: OnStep = lambda step: None
) -> Entry:
    """Return the entry with the bound that the certificate of an easier entry proves, unless its own is as high."""
    easier = library.read(name)
    if not is_easier(easier, instance):
        raise RefusedError(f"bound_from: {name} is not easier than {entry.name}")
    certificate = read_certificate(library.certificate_path(name))
    try:
        bound = _proved(easier, certificate, on_step).bound
    except RefusedError as error:
        raise RefusedError(f"bound_from: the certificate of {name} {error}") from error
    if bound is None or bound <= Fraction(entry.exact_bound):
        return entry
    return _with_bound(entry, bound, str(certificate.made.get("bound_by", "")), name)


def _with_bound(entry: Entry, bound: Fraction, by: str, source: str) -> Entry:
    objective = Fraction(entry.exact_objective)
    if bound > objective:
        raise RefusedError(f"the bound of {source} is above what the homes of {entry.name} cost, which is harder")
    entry = dataclasses.replace(entry, **_bound_fields(objective, bound), bound_by=by, bound_from=source)
    return dataclasses.replace(entry, claimed=_highest_claim([entry.claimed], entry))


def _raised(library: Library, entry: Entry, instance: Instance) -> Iterator[Entry]:
    """Yield the harder entries with a lower bound, with the verified bound of the given entry."""
    bound = Fraction(entry.exact_bound)
    for one in library.entries.values():
        lower = one.name != entry.name and _sizes(one) == _sizes(entry) and Fraction(one.exact_bound) < bound
        if lower and is_easier(instance, library.read(one.name)):
            yield _with_bound(one, bound, entry.bound_by, entry.bound_from or entry.name)


def _sizes(entry: Entry) -> tuple[int, int, int]:
    return entry.clients, entry.servers, entry.topics


def _highest_claim(claims: list[Claim | None], entry: Entry) -> Claim | None:
    """Return the highest claim above the proved bound that the objective of the entry does not refute."""
    if entry.status == "optimal":
        return None
    largest = entry.objective + slack(entry.objective)
    possible = [claim for claim in claims if claim is not None and entry.bound < claim.bound <= largest]
    return max(possible, key=lambda claim: claim.bound, default=None)


def _origin(certificate: Certificate) -> str:
    return ", ".join(f"{name} {value}" for name, value in certificate.made.items()) or "not stated"


def _ratio(number: Fraction) -> str:
    try:
        return f"{number.numerator}/{number.denominator}"
    except ValueError:
        raise RefusedError("has a cost with more digits than can be written") from None
