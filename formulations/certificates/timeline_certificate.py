"""Certificates of timelines: a schedule, a lower bound on all schedules, and a proof for each epoch.

docs/certificates.md defines the numbers and shows why they prove the bound.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from relocbench.formulations.certificates.certificate import (
    CAPS,
    MOST_STEPS,
    Step,
    cap_of,
    check_certificate_path,
    checked_made,
    integer_value,
    server_indices,
    step_from_json,
    step_to_json,
    unit_bits,
    write_object,
)
from relocbench.formulations.certificates.packed_arrays import Integers, from_json, to_json
from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.json_fields import Fields, read_object, whole_numbers
from relocbench.instances.kernels.ragged import IntArray

FORMAT = "relocbench-timeline-certificate/1"
# The fields of the file and of one epoch.
KNOWN = ("format", "timeline", "homes", "claim", "bits", "potential_bits", "made", "epochs")
EPOCH = ("claim", "bits", *CAPS, "potentials", "spool_shares", "proof")
# The fields of an epoch that are packed arrays.
ARRAYS = ("potentials", "spool_shares")


@dataclass(frozen=True, eq=False, kw_only=True)
class EpochProof:
    """The proof for one epoch of a timeline.

    Attributes
    ----------
    claim, bits
        No assignment costs less than ``claim / 2^bits``, where the cost is ``ΣD`` plus what the potentials add.
    proof
        The steps.
    potentials
        For each client of the epoch that is also in the next one, in the order of the epoch, one number for each
        server; None if all are 0.
    spool_shares
        For each client of the epoch and each of its loading topics that has a publisher in the epoch before, one number
        from 0 for each server, all ascending; None if all are 0.
    delay_cap, cloud_cap
        As in :class:`formulations.certificates.certificate.Certificate`.
    """

    claim: int
    bits: int
    proof: tuple[Step, ...]
    potentials: Integers | None = None
    spool_shares: Integers | None = None
    delay_cap: int | None = None
    cloud_cap: int | None = None

    @property
    def bound(self) -> Fraction:
        """The claim as a number."""
        return self.claim * Fraction(2) ** -self.bits


@dataclass(frozen=True, eq=False, kw_only=True)
class TimelineCertificate:
    """The content of a certificate of a timeline.

    Attributes
    ----------
    timeline
        Hash of the timeline.
    claim, bits
        No schedule costs less than ``claim / 2^bits``.
    epochs
        The proof of each epoch.
    homes
        A schedule, whose cost the verifier computes; None if there is none.
    potential_bits
        Potentials and shares of spools are in units of ``2^-potential_bits``.
    made
        How the certificate was made: texts and numbers that are not part of the proof.
    """

    timeline: str
    claim: int
    bits: int
    epochs: tuple[EpochProof, ...]
    homes: tuple[IntArray, ...] | None = None
    potential_bits: int = 0
    made: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def bound(self) -> Fraction:
        """The claim as a number."""
        return self.claim * Fraction(2) ** -self.bits

    @property
    def n_steps(self) -> int:
        """The number of steps of all epochs together."""
        return sum(len(epoch.proof) for epoch in self.epochs)


def write_timeline_certificate(certificate: TimelineCertificate, path: str | Path) -> None:
    """Write a certificate of a timeline as JSON, with one line per step.

    Parameters
    ----------
    certificate
        The certificate.
    path
        The file; compressed if its name ends in ``.gz``.

    Raises
    ------
    InputError
        If the name is not that of a certificate file.
    """
    check_certificate_path(path)
    head = {
        "format": FORMAT,
        "timeline": certificate.timeline,
        "claim": certificate.claim,
        "bits": certificate.bits,
        "potential_bits": certificate.potential_bits,
        "made": dict(certificate.made),
    }
    lines = [f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in head.items()]
    homes = certificate.homes
    if homes is not None:
        rows = ",\n  ".join(json.dumps(np.asarray(home).tolist()) for home in homes)
        lines.append(f'"homes": [\n  {rows}]')
    epochs = ",\n  ".join(map(_epoch_to_json, certificate.epochs))
    write_object(path, [*lines, f'"epochs": [\n  {epochs}]'])


def _epoch_to_json(epoch: EpochProof) -> str:
    head: dict[str, Any] = {"claim": epoch.claim, "bits": epoch.bits}
    head |= {name: cap for name in CAPS if (cap := getattr(epoch, name)) is not None}
    head |= {name: to_json(values) for name in ARRAYS if (values := getattr(epoch, name)) is not None}
    steps = ",\n   ".join(json.dumps(step_to_json(step)) for step in epoch.proof)
    return json.dumps(head)[:-1] + f', "proof": [\n   {steps}]}}'


def read_timeline_certificate(path: str | Path) -> TimelineCertificate:
    """Read a certificate of a timeline. Its arrays stay packed until the verifier knows their sizes.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    TimelineCertificate
        The certificate, which is not verified yet.

    Raises
    ------
    InputError
        If the file cannot be read or a field is wrong.
    """
    path = Path(path)
    try:
        check_certificate_path(path)
        fields = read_object(path, FORMAT, KNOWN)
        homes = fields.entries("homes") if "homes" in fields else None
        certificate = TimelineCertificate(
            timeline=fields.text("timeline"),
            claim=integer_value(fields.value("claim"), "claim"),
            bits=unit_bits(fields, "bits"),
            potential_bits=unit_bits(fields, "potential_bits"),
            homes=None if homes is None else tuple(_homes(home, f"homes[{t}]") for t, home in enumerate(homes)),
            epochs=tuple(_epoch(value, f"epochs[{t}]") for t, value in enumerate(fields.entries("epochs"))),
            made=checked_made(fields.value("made")) if "made" in fields else {},
        )
        if certificate.n_steps > MOST_STEPS:
            raise InputError("epochs", f"expected at most {MOST_STEPS} steps, got {certificate.n_steps}")
        return certificate
    except InputError as error:
        raise error if error.field.startswith(str(path)) else error.inside(str(path)) from error


def _homes(value: object, label: str) -> IntArray:
    if not isinstance(value, list):
        raise InputError(label, f"expected a list of servers, got {shown(value)}")
    return server_indices(whole_numbers(value, f"{label}[{{}}]"), label)


def _epoch(value: object, label: str) -> EpochProof:
    fields = Fields(value, label, EPOCH)
    optional: dict[str, Any] = {name: cap_of(fields, name) for name in CAPS if name in fields}
    optional |= {name: from_json(fields.value(name), fields.label(name)) for name in ARRAYS if name in fields}
    return EpochProof(
        **optional,
        claim=integer_value(fields.value("claim"), fields.label("claim")),
        bits=unit_bits(fields, "bits"),
        proof=tuple(
            step_from_json(step, f"{fields.label('proof')}[{index}]")
            for index, step in enumerate(fields.entries("proof"))
        ),
    )
