"""The error for input that cannot be used, and helpers for messages."""

import os
import reprlib

# Abbreviates values of any size, because a file may contain a list of millions of entries.
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = 1000


class InputError(ValueError):
    """Wrong input. The message is one line that names the field and the expected value.

    Parameters
    ----------
    field
        The field as the file format names it (``servers.storage[3]``); empty if the problem concerns no single field.
    problem
        The expected and the given value.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> try:
    ...     relocbench.evaluate(instance, [0, 0, 1, 7])
    ... except relocbench.InputError as error:
    ...     print(error)
    home[3]: expected a server from 0 to 3, got 7
    """

    def __init__(self, field: str, problem: str) -> None:
        # Paths, names and messages of libraries may contain line breaks.
        self.field = " ".join(field.splitlines())
        self.problem = " ".join(problem.splitlines())
        super().__init__(f"{self.field}: {self.problem}" if self.field else self.problem)

    def inside(self, place: str) -> "InputError":
        """Return the same error with a place in front of the field (``inst.json: servers.storage[3]: ...``).

        Parameters
        ----------
        place
            The file, or a part of it, that contains the field.

        Returns
        -------
        InputError
            The new error.

        Examples
        --------
        >>> import relocbench
        >>> print(relocbench.InputError("home", "expected a list").inside("sol.json"))
        sol.json: home: expected a list
        """
        return InputError(f"{place}: {self.field}" if self.field else place, self.problem)

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str]]:
        return InputError, (self.field, self.problem)


def shown(value: object, limit: int = 40) -> str:
    """Return a value in the form for error messages: its repr on one line, truncated if long.

    Parameters
    ----------
    value
        The value.
    limit
        Largest number of characters.

    Returns
    -------
    str
        The text.
    """
    try:
        text = _BRIEF.repr(value)
    except ValueError:  # Python refuses to print an integer with very many digits
        text = "a number too long to print"
    return _cut(" ".join(text.split()), limit)


def reason(error: Exception) -> str:
    """Return why a file cannot be read, without the path, which the message names already.

    Parameters
    ----------
    error
        The exception from the attempt to read.

    Returns
    -------
    str
        One line, truncated if long.
    """
    code = error.errno if isinstance(error, OSError) else None
    return _cut(" ".join((os.strerror(code) if code else str(error)).split()), 120)


def plural(count: int, noun: str, plural_noun: str = "") -> str:
    """Return a count with its noun, such as ``1 run`` or ``2 runs``.

    Parameters
    ----------
    count
        The number.
    noun
        The noun for one thing.
    plural_noun
        The noun for several things; by default the noun with an s.

    Returns
    -------
    str
        The text.
    """
    return f"{count:,} {noun if count == 1 else plural_noun or noun + 's'}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
