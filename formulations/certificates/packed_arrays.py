"""Integer arrays in certificates: short in the file, and never decompressed to more than the expected size."""

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

Int64Array = npt.NDArray[np.int64]
# The largest size of one array in bytes, decompressed.
LARGEST_ARRAY = 1 << 30
# The allowed numbers of bits per entry.
_WIDTHS = (0, 1, *range(8, 65, 8))


@dataclass(frozen=True, eq=False)
class Packed:
    """An array in its file form. The file does not contain the shape, which the reader knows.

    Attributes
    ----------
    bits
        Bits per entry: 0 (all entries are zero), 1 (0 or 1), or whole bytes up to 64 (with the sign in the lowest bit:
        0, -1, 1, -2, 2 are stored as 0, 1, 2, 3, 4).
    data
        The compressed entries (LZMA2 without a container): single bits as numpy packs them; otherwise the lowest bytes
        of all entries, then the next bytes, and so on.
    """

    bits: int
    data: bytes


# In memory, an array of integers or booleans may be used instead of its packed form.
Integers = Packed | npt.NDArray[Any]


def packed(values: Integers) -> Packed:
    """Pack an array with the least number of bits per entry.

    Parameters
    ----------
    values
        An array, or one that is packed already.

    Returns
    -------
    Packed
        The packed array.
    """
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


def unpacked(values: Integers, shape: tuple[int, ...], label: str) -> Int64Array:
    """Unpack an array. No more bytes are decompressed than the shape needs.

    Parameters
    ----------
    values
        The array.
    shape
        The expected shape.
    label
        The name of the field in error messages.

    Returns
    -------
    Int64Array
        The entries.

    Raises
    ------
    InputError
        If the size or the type of the entries is wrong.
    """
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
    """Convert an array to its JSON form.

    Parameters
    ----------
    values
        The array.

    Returns
    -------
    dict
        The fields ``bits`` and ``data``.
    """
    array = packed(values)
    return {"bits": array.bits, "data": base64.b64encode(array.data).decode()}


def from_json(value: object, label: str) -> Packed:
    """Read an array from its JSON form, without decompressing it.

    Parameters
    ----------
    value
        The JSON value.
    label
        The name of the field in error messages.

    Returns
    -------
    Packed
        The packed array.

    Raises
    ------
    InputError
        If a field is missing or wrong.
    """
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
    """Return the compression filters for a number of bytes; the dictionary is no larger than the data needs."""
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
