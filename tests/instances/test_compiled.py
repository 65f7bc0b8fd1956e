import os
import subprocess
import sys

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
        f"from instances.compiled import compiled\n\n@compiled\ndef scaled(x):\n    return {factor} * x\n"
    )
    (room / "caller.py").write_text(
        "from instances.compiled import compiled\nfrom room.callee import scaled\n\n"
        "@compiled\ndef twice(x):\n    return 2 * scaled(x)\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def test_a_kernel_is_compiled_anew_when_one_it_calls_has_changed(tmp_path):
    assert run(tmp_path, 10.0) == 60.0
    assert list((tmp_path / "cache").rglob("*.nbi"))
    # numba alone would find caller.py unchanged and answer 60 again.
    assert run(tmp_path, 100.0) == 600.0
