"""The GitHub Action and the pre-commit hook: their shell scripts run as they are, in a project of a user."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from relocbench.reports.gate.baseline_update import update

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
[HOOK] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A baseline of a heuristic, and a folder with the programs relocbench and python."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "mine.py").write_text("from tests.reports.gate.heuristics import nearest as mine\n")
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert update("mine.py:mine", baseline="baseline.json", instances="tiny-loose-*", seeds=[0, 1]).written
    finally:
        os.chdir(before)
    programs = folder / "bin"
    programs.mkdir()
    (programs / "relocbench").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m relocbench "$@"\n')
    (programs / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > installed\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    return folder


@pytest.fixture
def project(made, tmp_path):
    (tmp_path / "relocbench-baseline.json").write_bytes((made / "baseline.json").read_bytes())
    (tmp_path / "mine.py").write_bytes((made / "mine.py").read_bytes())
    return tmp_path


def environment(made, project, **more):
    return {
        "PATH": f"{made / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": ":".join(filter(None, [str(ROOT), *sys.path])),
        "HOME": os.environ["HOME"],
        "GITHUB_STEP_SUMMARY": str(project / "summary"),
        "GITHUB_OUTPUT": str(project / "output"),
        "GITHUB_ACTION_PATH": "/the action",
        **more,
    }


def run_action(made, project, **given):
    """Run the steps as a runner of GitHub does, and return the exit code, the outputs and the standard error.

    Defaults are filled in before the steps begin; only the steps know the folder of the action.
    """
    inputs = {name: str(content["default"]) for name, content in ACTION["inputs"].items()}
    assert set(given) <= set(inputs)
    values: dict[str, str] = {}

    def filled(text):
        while (found := re.search(r"\$\{\{ *(\S+) *\}\}", text)) is not None:
            text = text.replace(found[0], values.get(found[1], ""))
        return text

    values = {f"inputs.{name}": filled(text) for name, text in (inputs | given).items()}
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]  # inputs come as variables, so that they cannot become commands
        script = project / "step.sh"
        script.write_text(step["run"])
        variables = environment(made, project, **{name: filled(text) for name, text in step["env"].items()})
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=project,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            break
    lines = (project / "output").read_text().splitlines() if (project / "output").exists() else []
    return done, dict(line.split("=", 1) for line in lines)


def test_the_action_installs_itself_and_passes_an_unchanged_method(made, project):
    done, outputs = run_action(made, project)
    assert done.returncode == 0, done.stderr
    assert (project / "installed").read_text() == "-m\npip\ninstall\n/the action\n"
    assert outputs["passed"] == "true"
    assert set(outputs) == set(ACTION["outputs"])
    summary = (project / "summary").read_text()
    assert summary == (project / outputs["markdown"]).read_text()
    assert "passed: no method is worse" in summary
    assert "### ✅ <code>mine.py:mine</code>" in summary
    assert ElementTree.parse(project / outputs["junit"]).getroot().get("tests") == "1"
    assert '"passed": true' in (project / outputs["json"]).read_text()


def test_the_action_fails_a_worse_method_and_passes_options_on_as_they_are(made, project):
    (project / "mine.py").write_text("from tests.reports.gate.heuristics import forgets_one as mine\n")
    given = {"method": "mine.py:mine\n", "instances": "tiny-loose-*", "install": "", "out": "the reports"}
    more = "--alpha 0.01 --shrink-seconds 0"
    done, outputs = run_action(made, project, arguments=more, **given)
    assert done.returncode == 1, done.stderr
    assert not (project / "installed").exists()
    assert outputs["passed"] == "false"
    assert "without a valid assignment" in (project / "summary").read_text()
    root = ElementTree.parse(project / "the reports" / "check.xml").getroot()
    assert int(root.get("errors")) > 0


def test_wrong_use_of_the_action_gives_the_error_and_no_summary(made, project):
    hostile = '$(touch hacked)"; touch hacked #'
    done, outputs = run_action(made, project, install="", method=hostile, criteria="speed")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert outputs["passed"] == "false"
    assert not (project / "summary").exists()
    assert not (project / "hacked").exists()


def test_the_pre_commit_hook_checks_the_project(made, project):
    def run_hook(*arguments):
        command = [*shlex.split(HOOK["entry"]), *arguments]
        options = {"cwd": project, "env": environment(made, project), "capture_output": True, "text": True}
        return subprocess.run(command, check=False, **options)

    assert HOOK["pass_filenames"] is False
    done = run_hook()
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("passed\n")
    (project / "mine.py").write_text("from tests.reports.gate.heuristics import forgets_one as mine\n")
    done = run_hook("--shrink-seconds", "0")
    assert done.returncode == 1, done.stderr
    assert done.stdout.endswith("FAILED\n")
