import os
import subprocess
import sys

import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.kernels import compile_notice
from relocbench.runs.isolation.messages import RunRecord

KERNELS = """
from relocbench.instances.kernels.compiled import compiled

@compiled
def one(x):
    return x + 1

@compiled
def two(x):
    return x + 2
"""


def test_the_notice_is_printed_once_and_only_if_a_kernel_must_be_compiled(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    path = ":".join([str(tmp_path), *filter(None, sys.path)])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path}
    environment["RELOCBENCH_PROGRESS"] = ""

    def notices(program):
        command = [sys.executable, "-c", f"import kernels; {program}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stderr

    assert notices("pass") == ""
    assert notices("kernels.one(1); kernels.two(2)") == f"{compile_notice.NOTICE}\n"
    assert notices("kernels.one(1); kernels.two(2)") == ""
    foreign = "import numba; numba.njit(lambda x: x)(1)"
    assert notices(foreign) == ""


def test_a_worker_process_that_compiles_is_announced_once(monkeypatch, capsys):
    monkeypatch.setenv(compile_notice.PROGRESS_VARIABLE, "30")
    monkeypatch.setattr(compile_notice, "_printed", False)
    for run in ("a", "a", "b"):
        record = RunRecord(run)
        record.add(f'["{run}", "compiling", null]'.encode())
        assert record.invalid is None
    assert capsys.readouterr().err == f"{compile_notice.NOTICE}\n"


def test_the_notice_can_be_silenced(monkeypatch, capsys):
    monkeypatch.setattr(compile_notice, "_printed", False)
    monkeypatch.setenv(compile_notice.PROGRESS_VARIABLE, "0")
    compile_notice.print_notice()
    assert capsys.readouterr().err == ""
    monkeypatch.setenv(compile_notice.PROGRESS_VARIABLE, "often")
    with pytest.raises(InputError, match="RELOCBENCH_PROGRESS: expected a number, got 'often'"):
        compile_notice.progress_interval()
