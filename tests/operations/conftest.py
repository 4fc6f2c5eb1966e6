"""Operations are run as the processes that they are."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness import node_programs
from tests.harness.apiserver import ApiServer
from tests.operations.fake_bmc import FakeBmc

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
        self.path = str(OPERATIONS / f"{name}.py")
        self.parameters: dict = {}  # given to every run, below those of its own
        self.variables = {"NODE_NAME": "gpu-1", "ATTEMPT_ID": "op-uid.1", "TERMINATION_LOG": str(self.log)}

    def start(self, *options: str, parameters: dict | None = None, **variables: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", self.path, *options],
            env=self._environment(parameters, variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self, process: subprocess.Popen) -> Ran:
        out, _ = process.communicate(timeout=60)
        return Ran(process.returncode, self.log.read_text(), out)

    def __call__(self, *options: str, parameters: dict | None = None, **variables: str) -> Ran:
        """Run it to its end, without the start of an interpreter."""
        finished = node_programs.run([self.path, *options], self._environment(parameters, variables))
        return Ran(finished.code, self.log.read_text(), finished.out + finished.err)

    def _environment(self, parameters: dict | None, variables: dict[str, str]) -> dict[str, str]:
        told = {"PARAMETERS": json.dumps(self.parameters | (parameters or {}))}
        return {"PATH": os.environ["PATH"], **self.variables, **variables, **told}


@pytest.fixture
def bmc(tmp_path):
    """The BMC of gpu-1."""
    server = FakeBmc(tmp_path / "bmc-state")
    yield server
    server.close()


@pytest.fixture
def api(tmp_path):
    """An API server over HTTPS, whose gpu-1 is held by case-1."""
    server = ApiServer(tmp_path)
    yield server
    server.close()
