"""The model of each operation does what its program does: the same scenarios, the same exit codes."""

from random import Random

import pytest

from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.simulation import loop
from remediator_sim.simulation.node import NodeModel
from remediator_sim.simulation.programs import DONE, PROGRAMS, REFUSED, Ended, Run
from tests.operations.conftest import OPERATIONS, Program

BOOT = "gpu-1-boot-1"


async def played(template: str, boot: str, starts: int) -> list[Ended]:
    """How the model of an operation ends, each time that the same attempt is started."""

    def note(who: str, text: str) -> None:
        """Nobody reads the story."""

    node = NodeModel("gpu-1", Client(EmbeddedServer(seed=1).transport()), [], Random(1), note)
    env = {"NODE_NAME": "gpu-1", "ATTEMPT_ID": "attempt-1", "EXPECTED_BOOT_ID": boot}
    run = Run(node, node, template, env, Client(EmbeddedServer(seed=1).transport()), Random(1), lambda text: None)
    return [await PROGRAMS[template](run) for _ in range(starts)]


def fenced(template: str) -> bool:
    """Whether the program itself runs once for one attempt in one boot."""
    return "require_fresh" in (OPERATIONS / f"{template.replace('-', '_')}.py").read_text()


@pytest.mark.parametrize("template", [name for name in PROGRAMS if name not in ("drain", "reboot")])
def test_a_model_is_refused_in_another_boot_and_at_its_second_start_where_its_program_is(template):
    (other,) = loop.run(played(template, "another-boot", 1))
    first, second = loop.run(played(template, BOOT, 2))
    assert first.code == DONE
    assert (other.code == REFUSED, second.code == REFUSED) == (fenced(template), fenced(template))


@pytest.fixture
def program(tmp_path):
    """The program of reboot on a node made of files, whose service manager turns it down."""
    root, commands = tmp_path / "host", tmp_path / "bin"
    boot = root / "proc/sys/kernel/random/boot_id"
    for folder in (boot.parent, commands):
        folder.mkdir(parents=True)
    boot.write_text(f"{BOOT}\n")
    (commands / "nsenter").write_text("#!/bin/sh\nexit 1\n")
    (commands / "nsenter").chmod(0o755)
    made = Program(tmp_path, "reboot")
    made.variables |= {"HOST_ROOT": str(root), "PATH": f"{commands}:/usr/bin:/bin", "ATTEMPT_ID": "attempt-1"}
    return made


def test_both_reboots_refuse_another_boot_in_the_same_words(program):
    real = program(EXPECTED_BOOT_ID="another-boot")
    (model,) = loop.run(played("reboot", "another-boot", 1))
    assert (real.code, real.message) == tuple(model)


def test_both_reboots_run_once_for_one_attempt_in_one_boot(program):
    first, second = (program(EXPECTED_BOOT_ID=BOOT) for _ in range(2))
    assert (first.code, second.code) == (1, REFUSED)

    async def twice() -> list[int]:
        def note(who: str, text: str) -> None:
            """Nobody reads the story."""

        node = NodeModel("gpu-1", Client(EmbeddedServer(seed=1).transport()), [], Random(1), note)
        env = {"NODE_NAME": "gpu-1", "ATTEMPT_ID": "attempt-1", "EXPECTED_BOOT_ID": BOOT}
        run = Run(node, node, "reboot", env, Client(EmbeddedServer(seed=1).transport()), Random(1), lambda text: None)
        node.markers.add("attempt-1")
        again = await PROGRAMS["reboot"](run)
        node.markers.clear()
        await PROGRAMS["reboot"](run)
        return [again.code, node.boots, (await PROGRAMS["reboot"](run)).code]

    assert loop.run(twice()) == [REFUSED, 2, REFUSED]
