"""File names from any text, such as the name of an instance or the selector of a method."""

import hashlib
import re
import unicodedata

# The longest result in bytes of UTF-8, without the ending. File systems accept 255 bytes for the whole name.
LONGEST = 150
# Punctuation that may stay, besides letters, marks and digits of any script. "~" is not among it: it separates the
# hash, so that no ordinary name equals one that was changed.
_PUNCTUATION = "-_.,+=@ "
# Windows opens a device under these names, with any ending.
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]) *(\..*)?", re.IGNORECASE | re.DOTALL)


def safe_file_name(text: str, ending: str = "") -> str:
    """Return the name of a file for a text. This is the only way in which a name becomes part of a path.

    A text that is a harmless file name is not changed. Otherwise each other character becomes ``_`` and a hash of the
    text follows, so that different texts have different names.

    Parameters
    ----------
    text
        Any text.
    ending
        The end of the file name, such as ``.json``.

    Returns
    -------
    str
        The name. It contains no separator of paths and no control character, does not begin with a dot or a hyphen, is
        not the name of a device, and has at most ``LONGEST`` bytes before the ending.
    """
    composed = unicodedata.normalize("NFC", text)  # some file systems do not tell composed letters from others
    kept = "".join(letter if _is_harmless(letter) else "_" for letter in composed)
    # Blanks at the ends are invisible, and Windows removes them and dots. A hyphen would begin an option.
    stem = kept.lstrip(".- ").rstrip(". ")
    stem = stem.encode()[:LONGEST].decode(errors="ignore")
    if stem == text and text and not _DEVICES.fullmatch(text):
        return f"{text}{ending}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    stem = re.sub("_{2,}", "_", stem).encode()[: LONGEST - len(digest) - 2].decode(errors="ignore")
    stem = re.sub(r"^[\W_]+|[\W_]+$", "", stem) or "unnamed"
    device = "_" if _DEVICES.fullmatch(stem) else ""
    return f"{device}{stem}~{digest}{ending}"


def _is_harmless(letter: str) -> bool:
    return letter in _PUNCTUATION or unicodedata.category(letter)[0] in "LMN"
