"""node-problem-detector runs every detector: each node made of files shows as the right Condition of a real Node."""

import json
import os
import sys
from itertools import zip_longest
from pathlib import Path

import pytest
import pytest_asyncio

from tests.cluster.servers import serving
from tests.contract.npd.playing import Play
from tests.detectors.fixtures import all_cases
from tests.harness.waiting import until
from tests.native import build_stub

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[3]
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
STATUS = {0: "False", 1: "True", 2: "Unknown"}
ONCE = {"invoke_interval": "1h", "timeout": "150s"}  # a second run would be another case
SECONDS = 240.0  # for 40 runs at a time on a busy machine
CASES = all_cases()
# A node takes one case of each detector, so that as many run beside each other as on a real one. Where samples are
# taken, the first node runs always: it has a case of every detector.
NODES = [[(name, case) for name, case in zip(CASES, row, strict=True) if case] for row in zip_longest(*CASES.values())]


def monitor(directory, library, name, case):
    """The shipped file of a detector, pointed at a case; the runs before the last are done by the same program."""
    root = directory / name
    root.mkdir()
    case.arrange(root)
    settings = {"PATH": PATH, **case.environment(root, library)}
    program = ROOT / "detectors" / f"{name}.py"
    *before, last = [case.arguments(root, now) for now in case.runs]
    script = directory / f"{name}.sh"
    lines = [f"export {key}='{value}'" for key, value in settings.items()]
    lines += [f"{program} {' '.join(arguments)} >/dev/null" for arguments in before]
    script.write_text("\n".join(["#!/bin/sh", *lines, f'exec {program} "$@"', ""]))
    script.chmod(0o755)
    body = json.loads((ROOT / "deploy/npd" / f"{name.replace('_', '-')}.json").read_text())
    body["pluginConfig"] |= ONCE
    body["rules"][0] |= {"path": str(script), "args": last, "timeout": ONCE["timeout"]}
    (directory / f"{name}.json").write_text(json.dumps(body))
    return body


def wanted(body, case):
    """What the Condition must show: status, reason, and a part of its message."""
    [rule], [healthy] = body["rules"], body["conditions"]
    if case.verdict == 0:
        return "False", healthy["reason"], healthy["message"]
    return STATUS[case.verdict], rule["reason"] if case.verdict == 1 else healthy["reason"], case.part


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(request):
    async with serving("real", request) as one:
        yield one


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(number, marks=pytest.mark.sampled("nodes")) for number in range(1, len(NODES)))]
)
async def test_what_a_detector_judges_is_the_condition_that_the_node_shows(number, server, tmp_path):
    directory, library = tmp_path / "node", build_stub(tmp_path)
    play = Play("real", server, {}, directory)
    bodies = {name: monitor(directory, library, name, case) for name, case in NODES[number]}
    types = {name: body["rules"][0]["condition"] for name, body in bodies.items()}
    await play.set_up()
    try:
        await play.start(*(directory / f"{name}.json" for name in bodies))
        seen = {}

        async def all_told():
            seen.update({name: await play.condition(kind) for name, kind in types.items()})
            return all(seen.values())

        await until(all_told, SECONDS)
    finally:
        await play.tear_down()
    wrong = {}
    for name, case in NODES[number]:
        status, reason, part = wanted(bodies[name], case)
        line = f"{seen[name].message}\n"  # as the detector printed it
        if seen[name].said[:2] != (status, reason) or part not in line:
            wrong[f"{name}: {case.name}"] = (seen[name].said, (status, reason, part))
    assert wrong == {}
