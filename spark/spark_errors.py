"""Messages of Spark's errors: which of the many lines of a failed job says what went wrong with a file."""

import re
from typing import TYPE_CHECKING

from relocbench.instances.errors import InputError

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError

FULL_DISK = re.compile(r"No space left on device|Disk quota exceeded")
FULL_DISK_ADVICE = "free space for the output, or for Spark's temporary files (--conf spark.local.dir=…)"
# Exceptions that say that a file or a file system is wrong, in Java and in Python workers.
_FILE_ERRORS = (
    r"(?:java\.io\.\w+|java\.nio\.file\.\w+|java\.net\.\w+|org\.apache\.hadoop\.[\w.$]+)(?:Exception|Error): (.+)",
    r"^\w+Error: (\[Errno \d+\] .+)$",
    r"\[(?:FAILED_READ_FILE|PATH_NOT_FOUND|PATH_ALREADY_EXISTS)[\w.]*\] (.+)",
)
LONGEST_MESSAGE = 240


def message_of_spark(text: str) -> str | None:
    """Return the line of a failed Spark job that says what is wrong with the input, the output or a disk.

    Parameters
    ----------
    text
        The message of the exception of pyspark, which holds the stack traces of tasks.

    Returns
    -------
    str or None
        One line; None if the job failed for another reason.
    """
    if found := re.search(rf"^{re.escape(InputError.__module__)}\.InputError: (.*)$", text, re.MULTILINE):
        return found[1]
    if full := FULL_DISK.search(text):
        return f"a disk is full ({full[0]}): {FULL_DISK_ADVICE}"
    if missing := missing_file_system(text):
        return missing
    for pattern in _FILE_ERRORS:
        if messages := re.findall(pattern, text, re.MULTILINE):
            return f"a file cannot be read or written ({_one_line(messages[-1])})"
    return None


def reason_of_java(error: "Py4JJavaError") -> str:
    """Return why an operation on files failed.

    Parameters
    ----------
    error
        The exception that a method of Hadoop's ``FileSystem`` raised.

    Returns
    -------
    str
        One line.
    """
    cause = error.java_exception
    text = str(cause.getMessage() or cause.getClass().getSimpleName())
    return missing_file_system(text) or _one_line(text)


def missing_file_system(text: str) -> str | None:
    """Return what to do if an error of Java says that Spark lacks a file system.

    Parameters
    ----------
    text
        The message of the error.

    Returns
    -------
    str or None
        One line; None if the message says something else.
    """
    if scheme := re.search(r'No FileSystem for scheme "?([\w.+-]+)', text):
        return f"Spark has no file system for {scheme[1]}: add its jar with --conf spark.jars.packages=…"
    if name := re.search(r"Class (org\.apache\.hadoop\.fs\.[\w.]+) not found", text):
        package = "org.apache.hadoop:hadoop-aws:VERSION" if ".s3a." in name[1] else "…"
        return f"Spark has no class {name[1]}: add its jar with --conf spark.jars.packages={package}"
    return None


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
