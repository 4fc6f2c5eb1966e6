"""A controller that is killed at any of its writes leaves nothing undone and does nothing twice.

One run for each write takes a quarter of an hour. `make test-long` tries all writes and `make test-cluster` a sample:
every twelfth one. The number of commits chooses the first of them, so twelve commits in a row try each write once on
the real server, and twelve turns of the embedded one, which comes at one commit of several, on that one.
TURN=3 in the environment tries what the third commit tries, whatever the number of commits is.
"""

import asyncio
from pathlib import Path

import pytest

from tests.cluster.e2e.case_run import ONCE, Left, made, play, request_lines
from tests.cluster.e2e.conftest import EMBEDDED
from tests.cluster.e2e.proxy import Cut
from tests.cluster.e2e.stage import Stage
from tests.cluster.servers import serving
from tests.harness.sample import one_in, sampled, turn

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]
EVERY = 12  # write of a sample
Place = tuple[str, int]


class Runs:
    """Runs on one kind of server, each on a stage and a node of its own. `killed` holds where they were killed."""

    def __init__(self, server: str, request: pytest.FixtureRequest, folder: Path, library: Path) -> None:
        self.server, self.request, self.folder, self.library = server, request, folder, library
        self.killed: set[Place] = set()

    async def undisturbed(self) -> tuple[Left, list[Place]]:
        """One case: what it leaves behind, and the place of each of its requests."""
        left, stage = await self._run("gpu-0", ("", 0))
        assert left.reboots == 1
        assert made(stage.tape) == ONCE, request_lines(stage.tape.mutations)
        return left, [(one.what, one.nth) for one in stage.tape.mutations]

    async def killed_at(self, places: list[Place], expected: Left, at_once: int) -> list[str]:
        """One run for each place; gives what differs, a text for each run in which something does."""
        waiting, found = iter(enumerate(places, 1)), []

        async def work() -> None:
            for number, place in waiting:
                found.append(await self._killed_at(f"gpu-{number}", place, expected))

        await asyncio.gather(*(work() for _ in range(at_once)))
        return [one for one in found if one]

    async def _killed_at(self, node: str, place: Place, expected: Left) -> str:
        """Kill the controller before its request at `place` leaves, and the next one after the answer to it came.

        Gives what differs in the end, empty where nothing does. A run that has no such request (another one of the
        ledger's numbers, or after a conflict) is an undisturbed one.
        """
        try:
            left, stage = await self._run(node, place)
        except AssertionError as failed:
            return f"killed at {place}: {failed}"
        if not stage.tape.cuts:
            self.killed.add(place)
        differs = [name for name in Left._fields if getattr(left, name) != getattr(expected, name)]
        found = [f"{name}: {getattr(left, name)} and not {getattr(expected, name)}" for name in differs]
        if made(stage.tape) != ONCE:
            found.append(f"made {made(stage.tape)}")
        return "\n".join([f"killed at {place}:", *found, request_lines(stage.tape.mutations)]) if found else ""

    async def _run(self, node: str, place: Place) -> tuple[Left, Stage]:
        """One case on a fresh stage, killed twice at its request at `place` if there is one."""
        folder = self.folder / node
        folder.mkdir()
        async with serving(self.server, self.request) as server, Stage(server, folder, self.library, [node]) as stage:
            stage.tape.cuts = [Cut(lambda one: (one.what, one.nth) == place, stage.crash, at) for at in (True, False)]
            await stage.start_controller()
            try:
                return await play(stage, node), stage
            except AssertionError as failed:
                last = stage.replicas[-1].program.written()[-1500:]
                raise AssertionError(f"{failed}\n{request_lines(stage.tape.mutations)}\n{last}") from failed


SERVERS = pytest.mark.parametrize(
    ("server", "at_once"), [pytest.param("http", 2, marks=EMBEDDED.marks), ("real", 1)], ids=["embedded", "real"]
)


@pytest.mark.long
@SERVERS
async def test_a_controller_killed_at_any_write_leaves_nothing_undone_and_does_nothing_twice(
    server: str, at_once: int, request: pytest.FixtureRequest, tmp_path: Path, library: Path
) -> None:
    runs = Runs(server, request, tmp_path, library)
    expected, places = await runs.undisturbed()
    differences = await runs.killed_at(places, expected, at_once)
    assert not differences, "\n\n".join(differences)
    assert {what for what, _ in runs.killed} == {what for what, _ in places}
    assert len(runs.killed) >= 0.75 * len(places), sorted(set(places) - runs.killed)


@SERVERS
async def test_a_controller_killed_at_a_write_of_the_sample_leaves_nothing_undone_and_does_nothing_twice(
    server: str, at_once: int, request: pytest.FixtureRequest, tmp_path: Path, library: Path
) -> None:
    runs = Runs(server, request, tmp_path, library)
    expected, places = await runs.undisturbed()
    sample = sampled(places, turn() if server == "real" else turn() // one_in("on_server"), EVERY)
    differences = await runs.killed_at(sample, expected, at_once)
    assert not differences, "\n\n".join(differences)
    assert len(runs.killed) >= 0.5 * len(sample), sorted(set(sample) - runs.killed)
