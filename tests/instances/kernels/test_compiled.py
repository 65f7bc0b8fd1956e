import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from room import caller
print(caller.twice(3.0))
"""


def run(tmp_path, factor):
    room = tmp_path / "room"
    room.mkdir(exist_ok=True)
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
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


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


@pytest.mark.slow
def test_several_processes_can_fill_an_empty_cache_together(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    script = (
        "from relocbench.instances.generators.families import FAMILIES\n"
        "from relocbench.instances.nearest_server import nearest_server\n"
        "instance = FAMILIES['paper'].cells({'sigma': 5})[0].build(0)\n"
        "print(nearest_server(instance).sum())"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    answers = [process.communicate() for process in running]
    assert all(process.returncode == 0 for process in running), answers
    assert len({out for out, _ in answers}) == 1
    assert list((tmp_path / "cache").rglob("*.nbi"))
