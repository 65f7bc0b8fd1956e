"""Certificate files: an assignment, a lower bound on all assignments, and the steps that prove the bound.

docs/certificates.md defines the numbers of a step and shows why they prove the bound.
"""

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.certificates.packed_arrays import Int64Array, Integers, Packed, from_json, packed, to_json
from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.json_fields import Fields, read_object
from relocbench.instances.kernels.ragged import FloatArray, IntArray

FORMAT = "relocbench-certificate/1"
# The format of a certificate with steps that the first format did not have.
CONTENTS_FORMAT = "relocbench-certificate/2"
# Prices of homes with prices of pairs. In the format before, a step of this kind has no prices of pairs.
PAIRS_FORMAT = "relocbench-certificate/3"
# The fields of the file.
KNOWN = ("format", "instance", "home", "claim", "bits", "delay_cap", "cloud_cap", "made", "proof")
# Units are from 2^-MOST_BITS to 2^MOST_BITS. The quotient of any two floats above 0 is within this range.
MOST_BITS = 2200
# All numbers of the file are below this in size.
NUMBER_BITS = 200
LARGEST_NUMBER = 1 << NUMBER_BITS
# The powers of two that are floats.
LEAST_CAP, LARGEST_CAP = -1074, 1023
# The largest number of steps of a proof.
MOST_STEPS = 100_000

# A split by θ is at a multiple of 1/SHARE_UNITS.
SHARE_UNITS = 1024
# The kinds of steps; the last two are not in the first format.
KINDS = ("dual", "split-client", "split-topic", "split-share", "contents", "home-prices")
CAPS = ("delay_cap", "cloud_cap")
# The fields of each step that are packed arrays, and all fields of a dual step and of prices of homes.
_ARRAYS = ("active", "messages", "shares")
_CONTENTS_ARRAYS = ("client_prices", "pair_prices", "least")
_HOME_PRICES_ARRAYS = ("messages", "prices", "pair_prices", "least", "ends", "beta")
_HOME_PRICES = ("step", "bits", "multiplier_bits", "ranges", *_HOME_PRICES_ARRAYS)
_DUAL = ("step", "bits", "multiplier_bits", "fix", "alpha", "beta", "hard", *_ARRAYS)


@dataclass(frozen=True, eq=False, kw_only=True)
class Dual:
    """A dual step: dual variables that prove a lower bound for a region.

    Attributes
    ----------
    bits
        Messages and shares are in units of ``2^-bits``.
    multiplier_bits
        ``alpha`` and ``beta`` are in units of ``2^-multiplier_bits``.
    fix
        Whether reduced-cost fixing follows: homes are forbidden that no assignment below the claim can use.
    alpha, beta
        Multipliers of storage and compute, per server.
    hard
        0 or 1 per server: whether its loads themselves are limited, to the capacity divided by the least ``θ``.
    active
        The homes that messages and shares are given for (``M×L``).
    messages
        One number for each edge and each active server of its first client, ascending. Edges are pairs ``i < j`` of
        which at least one sends to the other, in lexicographic order.
    shares
        How the price of a topic is divided among its publishers: one number for each client, each of its loading topics
        and each of its active servers, all ascending.
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
    """Split a region into two parts: the client's home is one of the servers, or another server.

    Attributes
    ----------
    client, servers
        The client and the servers.
    first
        The number of following steps that are about the first part; the rest are about the second.
    """

    client: int
    servers: tuple[int, ...]
    first: int = 0


@dataclass(frozen=True)
class SplitTopic:
    """Split a region into two parts: no publisher of the topic is at the server, or at least one is.

    Attributes
    ----------
    topic, server
        The topic and the server.
    first
        As in :class:`SplitClient`.
    """

    topic: int
    server: int
    first: int = 0


@dataclass(frozen=True)
class SplitShare:
    """Split a region into two parts: ``θ`` of the server is at most ``share/1024``, or at least that.

    Attributes
    ----------
    server, share
        The server and the value of ``θ``.
    first
        As in :class:`SplitClient`.
    """

    server: int
    share: int
    first: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Contents:
    """A contents step: prices at which the least values of the servers' contents prove a lower bound for a region.

    Attributes
    ----------
    bits
        All numbers are in units of ``2^-bits``.
    client_prices
        ``π``: one number for each client.
    pair_prices
        ``h``: one number from 0 on for each pair of clients of which the first sends to the second, in lexicographic
        order, and each server, ascending.
    least
        One number for each server, which no content of it may be below.
    """

    bits: int
    client_prices: Integers
    pair_prices: Integers
    least: Integers


@dataclass(frozen=True, eq=False, kw_only=True)
class HomePrices:
    """Prices of homes, which prove a lower bound for a region together with the least contents of the servers.

    A client has two labels for each server: processed there, and delegated by it. The arrays with ``2·L`` columns have
    the labels of local processing first.

    Attributes
    ----------
    bits, multiplier_bits
        Messages, prices and ``least`` are in units of ``2^-bits``, ``beta`` in units of ``2^-multiplier_bits``.
    ranges
        The number of ends of ranges of ``θ`` for each server.
    messages
        For each edge, one number for each label of its first client (edges × ``2·L``).
    prices
        What a client pays for each label, and the content of the server earns (``M×2·L``).
    pair_prices
        For each edge, what its clients pay for each label if both have it, and the content of the server earns
        (edges × ``2·L``).
    least
        One number for each server, which no content of it may be below.
    ends
        For each server, the values of ``θ`` at which its possible values are divided, descending, in units of
        ``2^-20``.
    beta
        For each server, a price of compute for ``θ = 1`` and for each range between two ends, which speeds up the
        search for the least content.
    """

    bits: int
    multiplier_bits: int
    ranges: int
    messages: Integers
    prices: Integers
    pair_prices: Integers
    least: Integers
    ends: Integers
    beta: Integers


Split = SplitClient | SplitTopic | SplitShare
Step = Dual | Contents | HomePrices | Split


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate:
    """The content of a certificate file.

    Attributes
    ----------
    instance
        Content hash of the instance.
    home
        One server per client. The verifier computes its cost.
    claim, bits
        No assignment costs less than ``claim / 2^bits``.
    proof
        The steps.
    delay_cap, cloud_cap
        The proof is about the instance in which no ``dH`` and ``dS`` is above ``2^delay_cap``, and ``dC`` not above
        ``2^cloud_cap``; larger delays are replaced by these. The cost increases with every delay, so a bound for that
        instance holds for the given one. None means that nothing is replaced.
    made
        How the certificate was made: texts and numbers that are not part of the proof.
    """

    instance: str
    home: IntArray
    claim: int
    bits: int
    proof: tuple[Step, ...]
    delay_cap: int | None = None
    cloud_cap: int | None = None
    made: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def bound(self) -> Fraction:
        """The claim as a number."""
        return self.claim * Fraction(2) ** -self.bits


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
    """Create a dual step from floats.

    Parameters
    ----------
    active, messages, shares, alpha, beta, hard
        The numbers, in the order that :class:`Dual` defines.
    bits, multiplier_bits
        The units of the numbers.
    fix
        Whether reduced-cost fixing follows.

    Returns
    -------
    Dual
        The step, with packed arrays.

    Raises
    ------
    InputError
        If a number is not an integer in its unit.
    """
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


def _scaled(values: npt.ArrayLike, bits: int, label: str) -> Int64Array:
    scaled: FloatArray = np.ldexp(np.asarray(values, np.float64), bits)
    if not (np.abs(scaled) < 2.0**63).all() or (scaled != np.floor(scaled)).any():
        raise InputError(label, f"expected multiples of 2^-{bits} that fit 64 bits")
    return scaled.astype(np.int64)


def check_certificate_path(path: str | Path) -> None:
    """Check that a path has the name of a certificate file.

    Parameters
    ----------
    path
        The path.

    Raises
    ------
    InputError
        If the name does not end in ``.json`` or ``.json.gz``.
    """
    if not Path(path).name.endswith((".json", ".json.gz")):
        raise InputError(str(path), "expected a name ending in .json or .json.gz for a certificate")


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate as JSON, with one line per step.

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
        "format": _format_of(certificate.proof),
        "instance": certificate.instance,
        "home": np.asarray(certificate.home).tolist(),
        "claim": certificate.claim,
        "bits": certificate.bits,
        **{name: cap for name in CAPS if (cap := getattr(certificate, name)) is not None},
        "made": dict(certificate.made),
    }
    lines = [f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in head.items()]
    steps = ",\n  ".join(json.dumps(step_to_json(step)) for step in certificate.proof)
    write_object(path, [*lines, f'"proof": [\n  {steps}]'])


def write_object(path: str | Path, lines: Sequence[str]) -> None:
    """Write a JSON object with one field in each line.

    Parameters
    ----------
    path
        The file; compressed if its name ends in ``.gz``.
    lines
        The fields, as JSON.
    """
    content = ("{" + ",\n ".join(lines) + "}\n").encode()
    with written_whole(path) as temporary:
        temporary.write_bytes(gzip.compress(content, mtime=0) if Path(path).suffix == ".gz" else content)


def read_certificate(path: str | Path) -> Certificate:
    """Read a certificate. Its arrays stay packed until the verifier knows their sizes.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Certificate
        The certificate, which is not verified yet.

    Raises
    ------
    InputError
        If the file cannot be read or a field is wrong.
    """
    path = Path(path)
    try:
        check_certificate_path(path)
        fields = read_object(path, (FORMAT, CONTENTS_FORMAT, PAIRS_FORMAT), KNOWN)
        version = fields.text("format")
        steps = fields.entries("proof")
        if len(steps) > MOST_STEPS:
            raise InputError("proof", f"expected at most {MOST_STEPS} steps, got {len(steps)}")
        return Certificate(
            instance=fields.text("instance"),
            home=server_indices(fields.integers("home"), "home"),
            claim=integer_value(fields.value("claim"), "claim"),
            bits=unit_bits(fields, "bits"),
            **{name: cap_of(fields, name) for name in CAPS if name in fields},
            proof=tuple(step_from_json(step, f"proof[{index}]", version) for index, step in enumerate(steps)),
            made=checked_made(fields.value("made")) if "made" in fields else {},
        )
    except InputError as error:
        raise error if error.field.startswith(str(path)) else error.inside(str(path)) from error


def server_indices(home: Int64Array, label: str) -> IntArray:
    """Check that numbers can be indices of servers.

    Parameters
    ----------
    home
        The numbers.
    label
        The name of the field in the error message.

    Returns
    -------
    IntArray
        The same numbers.

    Raises
    ------
    InputError
        If one is below 0 or does not fit.
    """
    outside = (home < 0) | (home >= 2**31)
    if outside.any():
        where = int(outside.argmax())
        raise InputError(f"{label}[{where}]", f"expected the index of a server, got {home[where]}")
    return home.astype(np.int32)


def step_to_json(step: Step) -> dict[str, Any]:
    """Convert a step to its JSON form.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    dict
        The JSON object.
    """
    if isinstance(step, SplitClient):
        return {"step": "split-client", "client": step.client, "servers": list(step.servers), "first": step.first}
    if isinstance(step, SplitTopic):
        return {"step": "split-topic", "topic": step.topic, "server": step.server, "first": step.first}
    if isinstance(step, SplitShare):
        return {"step": "split-share", "server": step.server, "share": step.share, "first": step.first}
    if isinstance(step, Contents):
        head = {"step": "contents", "bits": step.bits}
        return head | {name: to_json(getattr(step, name)) for name in _CONTENTS_ARRAYS}
    if isinstance(step, HomePrices):
        head = {"step": "home-prices"} | {name: getattr(step, name) for name in _HOME_PRICES[1:4]}
        return head | {name: to_json(getattr(step, name)) for name in _HOME_PRICES_ARRAYS}
    content: dict[str, Any] = {"step": "dual"}
    content |= {name: getattr(step, name) for name in ("bits", "multiplier_bits", "fix")}
    content |= {name: list(getattr(step, name)) for name in ("alpha", "beta", "hard")}
    return content | {name: to_json(getattr(step, name)) for name in _ARRAYS}


def _format_of(proof: tuple[Step, ...]) -> str:
    """Return the oldest format that has all steps of a proof."""
    if any(isinstance(step, HomePrices) for step in proof):
        return PAIRS_FORMAT
    return CONTENTS_FORMAT if any(isinstance(step, Contents) for step in proof) else FORMAT


def step_from_json(value: object, label: str, version: str = PAIRS_FORMAT) -> Step:
    """Read a step from its JSON form.

    Parameters
    ----------
    value
        The JSON value.
    label
        The name of the step in the error message.
    version
        The format of the file.

    Returns
    -------
    Step
        The step. Its arrays stay packed.

    Raises
    ------
    InputError
        If a field is wrong.
    """
    kinds = KINDS[:-2] if version == FORMAT else KINDS
    kind = value.get("step") if isinstance(value, dict) else None
    if isinstance(value, dict) and kind not in kinds:
        expected = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
        raise InputError(f"{label}.step", f"expected {expected}, got {shown(kind)}")
    if kind == "contents":
        fields = Fields(value, label, ("step", "bits", *_CONTENTS_ARRAYS))
        arrays = {name: from_json(fields.value(name), fields.label(name)) for name in _CONTENTS_ARRAYS}
        return Contents(bits=unit_bits(fields, "bits"), **arrays)
    if kind == "home-prices":
        known = [name for name in _HOME_PRICES if name != "pair_prices" or version == PAIRS_FORMAT]
        fields = Fields(value, label, tuple(known))
        arrays = {
            name: from_json(fields.value(name), fields.label(name)) for name in _HOME_PRICES_ARRAYS if name in known
        }
        arrays.setdefault("pair_prices", Packed(0, b""))
        return HomePrices(
            bits=unit_bits(fields, "bits"),
            multiplier_bits=unit_bits(fields, "multiplier_bits"),
            ranges=fields.integer("ranges"),
            **arrays,
        )
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
    fix = fields.value("fix")
    if not isinstance(fix, bool):
        raise InputError(fields.label("fix"), f"expected true or false, got {shown(fix)}")
    return Dual(
        bits=unit_bits(fields, "bits"),
        multiplier_bits=unit_bits(fields, "multiplier_bits"),
        fix=fix,
        alpha=_multipliers(fields, "alpha"),
        beta=_multipliers(fields, "beta"),
        hard=tuple(fields.integers("hard").tolist()),
        **{name: from_json(fields.value(name), fields.label(name)) for name in _ARRAYS},
    )


def check_bits(bits: int, label: str) -> None:
    """Check a unit.

    Parameters
    ----------
    bits
        The unit is ``2^-bits``.
    label
        The name of the field in the error message.

    Raises
    ------
    InputError
        If the unit is out of range.
    """
    if not -MOST_BITS <= bits <= MOST_BITS:
        raise InputError(label, f"expected a number from {-MOST_BITS} to {MOST_BITS}, got {shown(bits)}")


def check_cap(cap: int, label: str) -> None:
    """Check a cap on delays.

    Parameters
    ----------
    cap
        The cap is ``2^cap``.
    label
        The name of the field in the error message.

    Raises
    ------
    InputError
        If the power is not a float.
    """
    if type(cap) is not int or not LEAST_CAP <= cap <= LARGEST_CAP:
        raise InputError(label, f"expected a number from {LEAST_CAP} to {LARGEST_CAP}, got {shown(cap)}")


def integer_value(value: object, label: str) -> int:
    """Read a whole number of at most 200 bits.

    Parameters
    ----------
    value
        The JSON value.
    label
        The name of the field in the error message.

    Returns
    -------
    int
        The number.

    Raises
    ------
    InputError
        If it is something else.
    """
    if type(value) is not int or not -LARGEST_NUMBER < value < LARGEST_NUMBER:
        raise InputError(label, f"expected a whole number of at most {NUMBER_BITS} bits, got {shown(value)}")
    return value


def unit_bits(fields: Fields, name: str) -> int:
    """Read a unit.

    Parameters
    ----------
    fields, name
        The JSON object and the name of the field.

    Returns
    -------
    int
        The unit is ``2^-bits``.

    Raises
    ------
    InputError
        If it is no unit.
    """
    bits = integer_value(fields.value(name), fields.label(name))
    check_bits(bits, fields.label(name))
    return bits


def cap_of(fields: Fields, name: str) -> int:
    """Read a cap on delays.

    Parameters
    ----------
    fields, name
        The JSON object and the name of the field.

    Returns
    -------
    int
        The cap is ``2^cap``.

    Raises
    ------
    InputError
        If it is no cap.
    """
    cap = integer_value(fields.value(name), fields.label(name))
    check_cap(cap, fields.label(name))
    return cap


def _multipliers(fields: Fields, name: str) -> tuple[int, ...]:
    return tuple(
        integer_value(value, f"{fields.label(name)}[{index}]") for index, value in enumerate(fields.entries(name))
    )


def checked_made(value: object) -> dict[str, str | int | float]:
    """Read how a certificate was made.

    Parameters
    ----------
    value
        The JSON value.

    Returns
    -------
    dict
        Texts and numbers by name.

    Raises
    ------
    InputError
        If it contains something else.
    """
    if not isinstance(value, dict):
        raise InputError("made", f"expected an object, got {shown(value)}")
    for content in value.values():
        if not isinstance(content, str | int | float) or (isinstance(content, float) and not math.isfinite(content)):
            raise InputError("made", f"expected texts and numbers, got {shown(content)}")
    return value
