import os
import subprocess
import sys


def test_without_a_writable_home_the_cache_is_a_temporary_folder(tmp_path):
    unwritable = {"HOME": "/dev/null", "XDG_CACHE_HOME": "", "TMPDIR": str(tmp_path)}
    script = "from relocbench.instances.kernels.cache_folder import cache_folder"
    script += "; print(cache_folder('numba', '/dev/null/x'))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | unwritable)
    assert done.stdout.strip().startswith(str(tmp_path))
