"""Operations are run as the processes that they are."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness.apiserver import ApiServer

OPERATIONS = Path(__file__).resolve().parents[2] / "operations"
sys.path.insert(0, str(OPERATIONS))


class Ran(NamedTuple):
    code: int
    message: str
    out: str


class Program:
    """Runs one operation program with the environment that the controller would give it."""

    def __init__(self, folder: Path, name: str):
        self.log = folder / "termination-log"
        self.log.touch()
        self.name = name
        self.parameters: dict = {}  # given to every run, below those of its own
        self.variables = {"NODE_NAME": "gpu-1", "ATTEMPT_ID": "op-uid.1", "TERMINATION_LOG": str(self.log)}

    def start(self, *options: str, parameters: dict | None = None, **variables: str) -> subprocess.Popen:
        environment = {"PATH": os.environ["PATH"], **self.variables, **variables}
        environment["PARAMETERS"] = json.dumps(self.parameters | (parameters or {}))
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(OPERATIONS / f"{self.name}.py"), *options],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self, process: subprocess.Popen) -> Ran:
        out, _ = process.communicate(timeout=60)
        return Ran(process.returncode, self.log.read_text(), out)

    def __call__(self, *options: str, parameters: dict | None = None, **variables: str) -> Ran:
        return self.finish(self.start(*options, parameters=parameters, **variables))


@pytest.fixture
def api(tmp_path):
    """An API server over HTTPS, whose gpu-1 is held by case-1."""
    server = ApiServer(tmp_path)
    yield server
    server.close()
