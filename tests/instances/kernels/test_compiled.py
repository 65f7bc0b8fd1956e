import os
import subprocess
import sys

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from room import caller
print(caller.twice(3.0))
"""


def start(tmp_path, factor, cache=None):
    """Start a program that calls a kernel of a project in this folder."""
    room = tmp_path / "room"
    room.mkdir(parents=True, exist_ok=True)
    (room / "__init__.py").write_text("")
    (room / "callee.py").write_text(
        "from relocbench.instances.kernels.compiled import compiled\nfrom room.constants import FACTOR\n\n"
        "@compiled\ndef scaled(x):\n    return FACTOR * x\n"
    )
    (room / "constants.py").write_text(f"FACTOR = {factor}\n")
    (room / "caller.py").write_text(
        "from relocbench.instances.kernels.compiled import compiled\nfrom room.callee import scaled\n\n"
        "@compiled\ndef twice(x):\n    return 2 * scaled(x)\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache or tmp_path / "cache")}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(process):
    out, err = process.communicate()
    assert process.returncode == 0, err
    return float(out)


def run(tmp_path, factor, cache=None):
    return answer(start(tmp_path, factor, cache))


def test_a_kernel_is_compiled_again_after_a_change_in_a_kernel_it_calls(tmp_path):
    assert run(tmp_path, 10.0) == 60.0
    assert list((tmp_path / "cache").rglob("*.nbi"))
    # The cache of numba alone would find caller.py unchanged and return 60 again.
    assert run(tmp_path, 100.0) == 600.0


def test_a_kernel_is_not_compiled_again_after_a_change_in_an_unrelated_file(tmp_path):
    run(tmp_path, 10.0)
    before = sorted((tmp_path / "cache").rglob("*.nb*"))
    (tmp_path / "room" / "unrelated.py").write_text("FACTOR = 3\n")
    run(tmp_path, 10.0)
    assert sorted((tmp_path / "cache").rglob("*.nb*")) == before


def test_a_copy_of_the_code_in_another_folder_uses_the_same_cache(tmp_path):
    assert run(tmp_path / "one", 10.0, tmp_path / "cache") == 60.0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nb*")}
    assert run(tmp_path / "other", 10.0, tmp_path / "cache") == 60.0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nb*")} == before


def test_functions_of_other_people_keep_the_cache_that_numba_chooses(tmp_path):
    script = (
        "import numba, relocbench.instances.kernels.delays\nfrom theirs import one\n"
        "assert one(1) == 2\nassert numba.config.CACHE_DIR == ''"
    )
    (tmp_path / "theirs.py").write_text("import numba\n\n@numba.njit(cache=True)\ndef one(x):\n    return x + 1\n")
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, cwd=tmp_path)
    assert list((tmp_path / "__pycache__").glob("theirs.one-*.nbi"))


def test_several_processes_can_fill_an_empty_cache_together(tmp_path):
    running = [start(tmp_path / str(copy), 10.0, tmp_path / "cache") for copy in range(4)]
    assert [answer(process) for process in running] == [60.0] * 4
    assert list((tmp_path / "cache").rglob("*.nbi"))
