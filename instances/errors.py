"""The one error for input that cannot be used."""


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
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}" if field else problem)

    def inside(self, place: str) -> "InputError":
        """Return the same error, said of a file (``inst.json: servers.storage[3]: ...``)."""
        return InputError(f"{place}: {self.field}" if self.field else place, self.problem)

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str]]:
        return InputError, (self.field, self.problem)


def shown(value: object, limit: int = 40) -> str:
    """Return ``value`` as an error message shows it: its repr, in one line, cut when long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of more digits than Python prints, a list nested too deep
        text = f"a {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
