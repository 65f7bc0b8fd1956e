"""The one error for input that cannot be used."""

import os
import reprlib

# Shows enough of a value for a message, however large it is: a file may hold a list of millions.
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = 1000


class InputError(ValueError):
    """Input that is wrong: the message is one line naming the field and what is expected.

    Parameters
    ----------
    field
        Where the problem is, as the file spells it (``servers.storage[3]``); empty if it has no field.
    problem
        What was expected and what was found.
    """

    def __init__(self, field: str, problem: str) -> None:
        # Paths, names and the messages of libraries may hold line breaks; a message of ours is one line.
        self.field = " ".join(field.splitlines())
        self.problem = " ".join(problem.splitlines())
        super().__init__(f"{self.field}: {self.problem}" if self.field else self.problem)

    def inside(self, place: str) -> "InputError":
        """Return the same error, said of a file (``inst.json: servers.storage[3]: ...``)."""
        return InputError(f"{place}: {self.field}" if self.field else place, self.problem)

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str]]:
        return InputError, (self.field, self.problem)


def shown(value: object, limit: int = 40) -> str:
    """Return ``value`` as an error message shows it: its repr, in one line, cut when long."""
    try:
        text = _BRIEF.repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = "a number too long to print"
    return _cut(" ".join(text.split()), limit)


def reason(error: Exception) -> str:
    """Return why a file cannot be read, without the path that the operating system repeats."""
    code = error.errno if isinstance(error, OSError) else None
    return _cut(" ".join((os.strerror(code) if code else str(error)).split()), 120)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
