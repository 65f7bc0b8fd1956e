"""The error for a run that gave no homes. The module imports nothing large, because every command knows the error."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relocbench.runs.outcome import Outcome


class RunError(RuntimeError):
    """A run that gave no homes: the method raised an exception, crashed, or was stopped at a limit.

    Parameters
    ----------
    selector
        The method, as text.
    outcome
        What is known about the run: its status, the kind of failure, the error message, the time and the memory.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> try:
    ...     relocbench.solve(instance, "enumerate", memory_limit=1 << 20)
    ... except relocbench.RunError as error:
    ...     print(error.outcome.status)
    memory_limit
    """

    def __init__(self, selector: str, outcome: "Outcome") -> None:
        self.selector, self.outcome = selector, outcome
        super().__init__(f"{selector}: {outcome.status}: {outcome.error}")

    def __reduce__(self) -> "tuple[type[RunError], tuple[str, Outcome]]":
        return RunError, (self.selector, self.outcome)
