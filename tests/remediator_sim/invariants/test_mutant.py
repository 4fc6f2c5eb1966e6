"""The broken command line as a process of its own, as a demonstration would start it."""

import sys
from pathlib import Path

from remediator_sim.kubelet.program import Program, output
from tests.remediator.controller.lab import Answer, reboot_in_vain, until
from tests.remediator_sim.invariants.mutations import MUTATIONS
from tests.remediator_sim.invariants.story import fail, place, watched

MUTANT = (sys.executable, "-m", "tests.remediator_sim.invariants.mutant")


async def test_a_mutant_runs_as_the_controller_would_and_is_found_out(tmp_path: Path) -> None:
    async with place() as lab, watched(lab) as observer, lab.server.serve() as served:
        lab.answer("reboot", Answer(exit=137, does=reboot_in_vain))
        await lab.policy(verify={"settle": "1s", "fresh": "1s", "timeout": "1s"}, ladder=[{"operation": "reboot"}])
        await lab.node("gpu-1")
        options = ("--kubeconfig", served.kubeconfig, "--listen", "127.0.0.1:0", "--lease-seconds", "3")
        program = await Program.start([*MUTANT, "I10", "run", *options], tmp_path / "log")
        try:
            await fail(lab, "gpu-1")
            broken = await until(lambda: program.code is not None or observer.report()["I10"].broken, 40)
        finally:
            await program.kill()
    assert broken is not True, program.said()
    assert "though rung 1 of policy gpu-lost was used up" in broken[0]


async def test_a_mutation_that_does_not_exist_is_told_with_those_that_do(tmp_path: Path) -> None:
    program = await Program.start([*MUTANT, "I11"], tmp_path / "log")
    assert await program.ended(30) == 1
    assert program.said().strip() == f"mutant: no mutation 'I11'; there are {', '.join(MUTATIONS)}"


async def test_what_is_not_broken_by_a_mutation_works_as_ever() -> None:
    assert "kind: CustomResourceDefinition" in await output(*MUTANT, "I1", "crds")
