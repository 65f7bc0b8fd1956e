"""Certificates in files: an assignment, a claim about all others, and the steps that prove it.

What the numbers of a step mean, and why they prove anything, is in docs/certificates.md.
"""

import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.certificates.packed_arrays import Array, Integers, from_json, packed, to_json
from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.json_fields import Fields, read_object
from relocbench.instances.kernels.ragged import FloatArray, IntArray

FORMAT = "relocbench-certificate/1"
KNOWN = ("format", "instance", "home", "claim", "bits", "made", "proof")
MOST_BITS = 200
LARGEST_NUMBER = 1 << 200
MOST_STEPS = 100_000

SHARE_UNITS = 1024
_ARRAYS = ("active", "messages", "shares")
_DUAL = ("step", "bits", "multiplier_bits", "fix", "alpha", "beta", "hard", *_ARRAYS)


@dataclass(frozen=True, eq=False, kw_only=True)
class Dual:
    """One lower bound, as numbers.

    Attributes
    ----------
    bits
        Messages and shares are in units of ``2^-bits``.
    multiplier_bits
        ``alpha`` and ``beta`` are in units of ``2^-multiplier_bits``.
    fix
        Whether homes that cannot be part of anything cheaper than the claim are dropped afterwards.
    alpha, beta
        Multipliers of storage and compute, per server.
    hard
        0 or 1 per server: whether its full loads are held against what it could take if ``θ`` were least.
    active
        ``M×L``: the homes that messages and shares are given for.
    messages
        Edge after edge (pairs ``i < j`` of which one sends to the other, in lexicographic order), one number for each
        active server of ``i``, ascending.
    shares
        How the price of a topic is divided among its publishers: client after client, its loading topics ascending,
        its active servers ascending.
    """

    bits: int
    multiplier_bits: int
    fix: bool
    alpha: tuple[int, ...]
    beta: tuple[int, ...]
    hard: tuple[int, ...]
    active: Integers
    messages: Integers
    shares: Integers


@dataclass(frozen=True)
class SplitClient:
    """Two cases: the client's home is one of these servers, or another.

    ``first``, here and below: how many of the steps that follow are about the first case; the rest is about the second.
    """

    client: int
    servers: tuple[int, ...]
    first: int = 0


@dataclass(frozen=True)
class SplitTopic:
    """Two cases: no publisher of the topic is at the server, or one is."""

    topic: int
    server: int
    first: int = 0


@dataclass(frozen=True)
class SplitShare:
    """Two cases: the local share ``θ`` of the server is at most ``share/1024``, or at least that."""

    server: int
    share: int
    first: int = 0


Split = SplitClient | SplitTopic | SplitShare
Step = Dual | Split


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate:
    """What a certificate file says.

    Attributes
    ----------
    instance
        Content hash of the instance.
    home
        One server per client; what it costs is for the verifier to find out.
    claim, bits
        No assignment costs less than ``claim / 2^bits``.
    proof
        The steps.
    made
        Who made it and how long it took: free text and numbers, which prove nothing.
    """

    instance: str
    home: IntArray
    claim: int
    bits: int
    proof: tuple[Step, ...]
    made: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def bound(self) -> Fraction:
        """The claim as a number."""
        return Fraction(self.claim, 1 << self.bits)


def dual_step(
    active: npt.NDArray[np.bool_],
    messages: npt.ArrayLike,
    shares: npt.ArrayLike,
    alpha: npt.ArrayLike,
    beta: npt.ArrayLike,
    hard: npt.ArrayLike,
    bits: int,
    multiplier_bits: int,
    fix: bool,
) -> Dual:
    """Return a dual of floats that are whole in its units, packed; see :class:`Dual` for their order."""
    return Dual(
        bits=bits,
        multiplier_bits=multiplier_bits,
        fix=fix,
        alpha=tuple(_scaled(alpha, multiplier_bits, "alpha").tolist()),
        beta=tuple(_scaled(beta, multiplier_bits, "beta").tolist()),
        hard=tuple(_scaled(hard, 0, "hard").tolist()),
        active=packed(np.asarray(active, np.bool_)),
        messages=packed(_scaled(messages, bits, "messages")),
        shares=packed(_scaled(shares, bits, "shares")),
    )


def _scaled(values: npt.ArrayLike, bits: int, label: str) -> Array:
    scaled: FloatArray = np.ldexp(np.asarray(values, np.float64), bits)
    if not (np.abs(scaled) < 2.0**63).all() or (scaled != np.floor(scaled)).any():
        raise InputError(label, f"expected multiples of 2^-{bits} that fit 64 bits")
    return scaled.astype(np.int64)


def check_certificate_path(path: str | Path) -> None:
    """Refuse a path that does not look like a certificate's."""
    if not Path(path).name.endswith((".json", ".json.gz")):
        raise InputError(str(path), "expected a name ending in .json or .json.gz for a certificate")


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate as JSON, one step a line."""
    check_certificate_path(path)
    head = {
        "format": FORMAT,
        "instance": certificate.instance,
        "home": np.asarray(certificate.home).tolist(),
        "claim": certificate.claim,
        "bits": certificate.bits,
        "made": dict(certificate.made),
    }
    lines = [f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in head.items()]
    steps = ",\n  ".join(json.dumps(_step_to_json(step)) for step in certificate.proof)
    content = ("{" + ",\n ".join([*lines, f'"proof": [\n  {steps}]']) + "}\n").encode()
    with written_whole(path) as temporary:
        temporary.write_bytes(gzip.compress(content, mtime=0) if Path(path).suffix == ".gz" else content)


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate; its arrays stay packed until the verifier knows how large they must be."""
    path = Path(path)
    try:
        check_certificate_path(path)
        fields = read_object(path, FORMAT, KNOWN)
        steps = fields.entries("proof")
        if len(steps) > MOST_STEPS:
            raise InputError("proof", f"expected at most {MOST_STEPS} steps, got {len(steps)}")
        home = fields.integers("home")
        if len(home) and (home.min() < 0 or home.max() >= 2**31):
            where = int(((home < 0) | (home >= 2**31)).argmax())
            raise InputError(f"home[{where}]", f"expected the index of a server, got {home[where]}")
        return Certificate(
            instance=fields.text("instance"),
            home=home.astype(np.int32),
            claim=_whole(fields.value("claim"), "claim"),
            bits=_bits(fields, "bits"),
            proof=tuple(_step_from_json(step, f"proof[{index}]") for index, step in enumerate(steps)),
            made=_made(fields.value("made")) if "made" in fields else {},
        )
    except InputError as error:
        raise error if error.field.startswith(str(path)) else error.inside(str(path)) from error


def _step_to_json(step: Step) -> dict[str, Any]:
    if isinstance(step, SplitClient):
        return {"step": "split-client", "client": step.client, "servers": list(step.servers), "first": step.first}
    if isinstance(step, SplitTopic):
        return {"step": "split-topic", "topic": step.topic, "server": step.server, "first": step.first}
    if isinstance(step, SplitShare):
        return {"step": "split-share", "server": step.server, "share": step.share, "first": step.first}
    content: dict[str, Any] = {"step": "dual"}
    content |= {name: getattr(step, name) for name in ("bits", "multiplier_bits", "fix")}
    content |= {name: list(getattr(step, name)) for name in ("alpha", "beta", "hard")}
    return content | {name: to_json(getattr(step, name)) for name in _ARRAYS}


def _step_from_json(value: object, label: str) -> Step:
    kind = value.get("step") if isinstance(value, dict) else None
    if kind == "split-client":
        fields = Fields(value, label, ("step", "client", "servers", "first"))
        servers = tuple(fields.integers("servers").tolist())
        return SplitClient(fields.integer("client"), servers, fields.integer("first"))
    if kind == "split-topic":
        fields = Fields(value, label, ("step", "topic", "server", "first"))
        return SplitTopic(fields.integer("topic"), fields.integer("server"), fields.integer("first"))
    if kind == "split-share":
        fields = Fields(value, label, ("step", "server", "share", "first"))
        return SplitShare(fields.integer("server"), fields.integer("share"), fields.integer("first"))
    fields = Fields(value, label, _DUAL)
    if kind != "dual":
        problem = f"expected dual, split-client, split-topic or split-share, got {shown(kind)}"
        raise InputError(fields.label("step"), problem)
    fix = fields.value("fix")
    if not isinstance(fix, bool):
        raise InputError(fields.label("fix"), f"expected true or false, got {shown(fix)}")
    return Dual(
        bits=_bits(fields, "bits"),
        multiplier_bits=_bits(fields, "multiplier_bits"),
        fix=fix,
        alpha=_multipliers(fields, "alpha"),
        beta=_multipliers(fields, "beta"),
        hard=tuple(fields.integers("hard").tolist()),
        **{name: from_json(fields.value(name), fields.label(name)) for name in _ARRAYS},
    )


def _whole(value: object, label: str) -> int:
    if type(value) is not int or not -LARGEST_NUMBER < value < LARGEST_NUMBER:
        raise InputError(label, f"expected a whole number of at most {MOST_BITS} bits, got {shown(value)}")
    return value


def _bits(fields: Fields, name: str) -> int:
    bits = _whole(fields.value(name), fields.label(name))
    if not 0 <= bits <= MOST_BITS:
        raise InputError(fields.label(name), f"expected a number from 0 to {MOST_BITS}, got {shown(bits)}")
    return bits


def _multipliers(fields: Fields, name: str) -> tuple[int, ...]:
    return tuple(_whole(value, f"{fields.label(name)}[{index}]") for index, value in enumerate(fields.entries(name)))


def _made(value: object) -> dict[str, str | int | float]:
    if not isinstance(value, dict):
        raise InputError("made", f"expected an object, got {shown(value)}")
    for content in value.values():
        if not isinstance(content, str | int | float) or (isinstance(content, float) and not math.isfinite(content)):
            raise InputError("made", f"expected texts and numbers, got {shown(content)}")
    return value
