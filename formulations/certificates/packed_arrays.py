"""Arrays of whole numbers as certificates hold them: short in the file, and never larger than expected when read."""

import base64
import binascii
import lzma
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.json_fields import Fields

Array = npt.NDArray[np.int64]
# Of one array, decompressed.
LARGEST_ARRAY = 1 << 30
_WIDTHS = (0, 1, *range(8, 65, 8))


@dataclass(frozen=True, eq=False)
class Packed:
    """An array as the file holds it; its shape is known to the reader.

    Attributes
    ----------
    bits
        Width of an entry: 0 (all are zero), 1 (no sign), or whole bytes up to 64 (signs folded in: 0, -1, 1, -2, 2...).
    data
        Compressed (LZMA2 without a container): single bits as numpy packs them, else all lowest bytes, then all next
        ones, and so on.
    """

    bits: int
    data: bytes


# In memory an array of any kind of integers or truth values may stand for its packed form.
Integers = Packed | npt.NDArray[Any]


def packed(values: Integers) -> Packed:
    """Return the values in their shortest form."""
    if isinstance(values, Packed):
        return values
    array = np.asarray(values).ravel()
    if not array.any():
        return Packed(0, b"")
    if array.dtype.kind == "b":
        return Packed(1, _compressed(np.packbits(array).tobytes()))
    array = array.astype(np.int64)
    folded = ((array << 1) ^ (array >> 63)).view(np.uint64)
    width = (int(folded.max()).bit_length() + 7) // 8
    planes = folded.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].T
    return Packed(8 * width, _compressed(planes.tobytes()))


def unpacked(values: Integers, shape: tuple[int, ...], label: str) -> Array:
    """Return the values, which must be of this shape; no more than that is decompressed."""
    if not isinstance(values, Packed):
        if values.shape != shape:
            raise InputError(label, f"expected numbers of shape {shape}, got {values.shape}")
        if values.dtype.kind not in "bi":
            raise InputError(label, f"expected whole numbers, got {values.dtype}")
        return values.astype(np.int64)
    count = math.prod(shape)
    if values.bits == 0:
        return np.zeros(shape, np.int64)
    raw = np.frombuffer(_decompressed(values.data, (count * values.bits + 7) // 8, label), np.uint8)
    if values.bits == 1:
        return np.unpackbits(raw, count=count).astype(np.int64).reshape(shape)
    planes = np.zeros((count, 8), np.uint8)
    planes[:, : values.bits // 8] = raw.reshape(values.bits // 8, count).T
    folded = planes.view("<u8").astype(np.uint64).reshape(shape)
    return (folded >> np.uint64(1)).view(np.int64) ^ -(folded & np.uint64(1)).view(np.int64)


def to_json(values: Integers) -> dict[str, Any]:
    """Return an array as it stands in the file."""
    short = packed(values)
    return {"bits": short.bits, "data": base64.b64encode(short.data).decode()}


def from_json(value: object, label: str) -> Packed:
    """Read an array of the file, without decompressing it."""
    fields = Fields(value, label, ("bits", "data"))
    bits = fields.integer("bits")
    if bits not in _WIDTHS:
        raise InputError(fields.label("bits"), f"expected 0, 1 or whole bytes up to 64, got {shown(bits)}")
    try:
        data = base64.b64decode(fields.text("data"), validate=True)
    except (binascii.Error, ValueError):
        raise InputError(fields.label("data"), f"expected base64, got {shown(fields.value('data'))}") from None
    return Packed(bits, data)


def _filters(size: int) -> list[dict[str, int]]:
    """Return how so many bytes are compressed: with no larger window than they need."""
    window = 1 << min(max(size.bit_length(), 12), 26)
    preset = 9 | lzma.PRESET_EXTREME
    return [{"id": lzma.FILTER_LZMA2, "preset": preset, "dict_size": window, "lc": 0, "pb": 0}]


def _compressed(raw: bytes) -> bytes:
    return lzma.compress(raw, lzma.FORMAT_RAW, filters=_filters(len(raw)))


def _decompressed(data: bytes, size: int, label: str) -> bytes:
    if size > LARGEST_ARRAY:
        raise InputError(label, f"expected at most {LARGEST_ARRAY >> 20} MiB, got {size >> 20}")
    try:
        reader = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_filters(size))
        raw = reader.decompress(data, size + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise InputError(f"{label}.data", f"cannot be decompressed ({error})") from None
    if len(raw) != size or not reader.eof or reader.unused_data:
        raise InputError(f"{label}.data", f"expected {size} bytes when decompressed, got more or less")
    return raw
