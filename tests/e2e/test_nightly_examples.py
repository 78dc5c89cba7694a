"""The examples of docs/nightly.md, taken out of the page and run as far as they can be here.

Only the paths are others: /archive and /warehouse are folders of the test, and the commands are
those of this environment. What a site has and this machine has not (Slurm, pip's index) is a stub.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from warehouses import drawn, query

BOUND = 120


class Place:
    """Folders that stand for those of the page, and commands that stand for a site's."""

    def __init__(self, root: Path) -> None:
        self.root, self.archive, self.out = root, root / "archive", root / "warehouse"
        self.bin, self.log = root / "bin", root / "tracehouse.jsonl"
        self.bin.mkdir()
        for name, module in (("tracehouse", "tracehouse"), ("dask", "dask")):
            self.stub(name, f'exec {shlex.quote(sys.executable)} -m {module} "$@"')
        drawn(1).write(self.archive / "a.json")

    def stub(self, name: str, script: str) -> None:
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def moved(self, text: str) -> str:
        """Put the test's paths in the place of the page's."""
        for there, here in (
            ("/opt/tracehouse/bin/", f"{self.bin}/"),
            ("/var/log/tracehouse.jsonl", str(self.log)),
        ):
            text = text.replace(there, here)
        return re.sub(r'(?<![\w./])/(archive|warehouses?)(?=[/ "\n])', rf"{self.root}/\1", text)

    def run(self, *words: str, environment: dict[str, str] | None = None, bare: bool = False):
        """Run a command to its end, and then end whatever it has left running, as Slurm does."""
        path = os.pathsep.join([*([] if bare else [str(self.bin)]), "/usr/bin", "/bin"])
        variables = {"PATH": path, "HOME": str(self.root), "LANG": "C.UTF-8"} | (environment or {})
        if "PYTHONPATH" in os.environ:  # where the code under test is, if it is not installed
            variables["PYTHONPATH"] = os.environ["PYTHONPATH"]
        log = self.root / "output"
        with log.open("w") as file:  # no pipe, which those left running would hold open
            process = subprocess.Popen(
                words,
                cwd=self.root,
                env=variables,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout=BOUND)
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:  # nothing was left
                    pass
        return code, log.read_text()


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture(scope="module")
def blocks(repo_root) -> list[tuple[str, str]]:
    """Return the code blocks of the page, each with its language."""
    text = (repo_root / "docs" / "nightly.md").read_text(encoding="utf-8")
    return re.findall(r"^```([a-z]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def the_one(blocks: list[tuple[str, str]], language: str, words: str) -> str:
    (found,) = [text for spoken, text in blocks if spoken == language and words in text]
    return found


def statuses(out: Path) -> list[tuple[str, int]]:
    return query(out, "SELECT status, count(*) FROM files GROUP BY ALL ORDER BY ALL")


def test_the_line_of_cron(place, blocks):
    line = place.moved(the_one(blocks, "", "* * *")).strip()
    *times, command = line.split(maxsplit=5)
    assert [bool(re.fullmatch(r"\d+|\*", time)) for time in times] == [True] * 5
    assert "%" not in command  # which cron takes for the end of the line
    code, said = place.run("/bin/sh", "-c", command, bare=True)
    assert code == 0, said
    last = json.loads(place.log.read_text().splitlines()[-1])
    assert (last["event"], last["exit_code"]) == ("run", 0)
    assert statuses(place.out) == [("ok", 1)]


def units(place: Place, blocks) -> tuple[Path, Path]:
    service, timer = (
        place.moved(the_one(blocks, "ini", words)) for words in ("[Service]", "[Timer]")
    )
    files = place.root / "tracehouse.service", place.root / "tracehouse.timer"
    for file, text in zip(files, (service, timer), strict=True):
        file.write_text(text)
    return files


def read_unit(file: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string(file.read_text())
    return parser


def test_the_units_of_systemd(place, blocks):
    service, timer = units(place, blocks)
    command = read_unit(service)["Service"]["ExecStart"]
    assert read_unit(service)["Service"]["SuccessExitStatus"] == "1"
    assert read_unit(timer)["Timer"]["OnCalendar"] == "*-*-* 02:00"
    assert "$" not in command  # systemd has no shell
    (place.archive / "bad.json").write_text("nonsense")
    code, said = place.run(*shlex.split(command), bare=True)
    assert code == 1, said  # which SuccessExitStatus takes for success
    assert statuses(place.out) == [("ok", 1), ("rejected", 1)]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_the_units(place, blocks):
    def verified(*files: Path) -> str:
        words = ["systemd-analyze", "verify", *map(str, files)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr + ("" if done.returncode == 0 else "failed")

    service, timer = units(place, blocks)
    mine = [line for line in verified(service, timer).splitlines() if "tracehouse" in line]
    assert mine == []
    service.write_text(service.read_text().replace("MemoryMax", "MostMemory"))
    assert "MostMemory" in verified(service)  # it would have told


# https://docs.github.com/actions/reference/workflow-syntax-for-github-actions
OF_A_WORKFLOW = {"name", "run-name", "on", "permissions", "env", "defaults", "concurrency", "jobs"}
OF_A_JOB = {
    *("name", "permissions", "needs", "if", "runs-on", "environment", "concurrency", "outputs"),
    *("env", "defaults", "steps", "timeout-minutes", "strategy", "continue-on-error", "container"),
    "services",
}
OF_A_STEP = {
    *("id", "if", "name", "uses", "run", "working-directory", "shell", "with", "env"),
    *("continue-on-error", "timeout-minutes"),
}


def test_the_workflow_of_github(place, blocks):
    yaml = pytest.importorskip("yaml")
    workflow = yaml.load(place.moved(the_one(blocks, "yaml", "self-hosted")), yaml.BaseLoader)
    assert workflow.keys() <= OF_A_WORKFLOW
    assert workflow.keys() >= {"on", "jobs"}
    (schedule,) = workflow["on"]["schedule"]
    assert re.fullmatch(r"(\S+ ){4}\S+", schedule["cron"])
    (job,) = workflow["jobs"].values()
    assert job.keys() <= OF_A_JOB
    assert isinstance(job["runs-on"], list | str)
    place.stub("pip", f'echo "$@" >> {shlex.quote(str(place.root))}/installed')
    for step in job["steps"]:
        assert step.keys() <= OF_A_STEP
        code, said = place.run(
            "bash", "-e", "-c", step["run"], environment={"GITHUB_REF_NAME": "main"}
        )
        assert code == 0, said
    assert (place.root / "installed").read_text() == "install tracehouse\n"
    assert query(place.out, "SELECT label, status FROM files") == [("main", "ok")]


def job_file(place: Place, text: str) -> str:
    """Write a job and see that sbatch would find its options."""
    assert text.startswith("#!/bin/sh\n#SBATCH --")
    for option in re.findall(r"^#SBATCH (.*)$", text, re.MULTILINE):
        assert all(re.fullmatch(r"--[a-z-]+=\S+", word) for word in option.split())
    file = place.root / "job.sh"
    file.write_text(place.moved(text))
    return str(file)


def test_the_job_of_slurm_over_several_nodes(place, blocks):
    pytest.importorskip("distributed")
    job = job_file(place, the_one(blocks, "sh", "#SBATCH --nodes"))
    place.stub("srun", '"$@" &\n"$@" &\nwait')  # two tasks
    slurm = {"SLURM_SUBMIT_DIR": str(place.root), "SLURM_JOB_ID": "17"}
    code, said = place.run("/bin/sh", job, environment=slurm)
    assert code == 0, said
    assert query(place.out, "SELECT executor, exit_code FROM runs") == [("dask", 0)]
    assert statuses(place.out) == [("ok", 1)]


def test_the_array_of_slurm(place, blocks):
    job = job_file(place, the_one(blocks, "sh", "#SBATCH --array"))
    for task in ("0", "7"):
        drawn(int(task)).write(place.archive / f"team{task}" / "a.json")
        code, said = place.run("/bin/sh", job, environment={"SLURM_ARRAY_TASK_ID": task})
        assert code == 0, said
        names = query(place.root / "warehouses" / task, "SELECT name FROM ops")
        assert names == [(f"aten::op{task}",)]


def test_the_commands_of_the_page(place, blocks):
    """Those of the sections on runs, checks and retention, one after another."""
    plain = [text for language, text in blocks if language == "sh" and not text.startswith("#!")]
    local = [place.moved(text) for text in plain if "s3://" not in text]
    assert len(local) == 4
    for text in local:
        code, said = place.run("bash", "-e", "-c", text)
        assert code == 0, said
    # The trace was recorded in 2023, with the label that the last command asks for.
    ends = query(place.out, "SELECT status, label FROM files")
    assert ends == [("pruned", "nightly")]
