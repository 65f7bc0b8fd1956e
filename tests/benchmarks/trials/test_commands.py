import sys
from pathlib import Path

from benchmarks.trials.commands import run_command


def python(source):
    return [sys.executable, "-c", source]


def test_what_a_program_prints_and_its_exit_code_are_kept(tmp_path):
    done = run_command(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), tmp_path, 30)
    assert (done.code, done.out, done.err, done.hung, done.left) == (3, "out\n", "err\n", False, ())
    assert (done.last_line, done.printed) == ("err", 8)


def test_a_program_that_does_not_end_has_hung(tmp_path):
    done = run_command(python("input()"), tmp_path, 0.5)
    assert done.hung


def test_a_process_that_is_left_behind_is_found_and_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.trials.commands.AFTERMATH_SECONDS", 0.1)
    source = "import subprocess; print(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid)"
    done = run_command(python(source), tmp_path, 30)
    assert done.left == ("sleep 1000",)
    assert not Path("/proc", done.out.strip(), "exe").exists()


def test_a_program_that_kills_its_parent_does_not_reach_the_campaign(tmp_path):
    source = "import os, signal; os.kill(os.getppid(), signal.SIGKILL); print('alive')"
    assert run_command(python(source), tmp_path, 30, shielded=True).code == -9
    source = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    assert run_command(python(source), tmp_path, 30, shielded=True).code == -11
    assert run_command(python("import sys; sys.exit(2)"), tmp_path, 30, shielded=True).code == 2
