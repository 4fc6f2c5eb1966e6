"""What every model of a program has in common: how it is started, and how it ends."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from remediator.kube.wire.client import Client
from remediator_sim.simulation.node import NodeModel

DONE, FAILED, REFUSED, STOPPED = 0, 1, 2, 143


class Ended(NamedTuple):
    """An exit code and the last sentence of a program. The sentence of a model is how the program's own one begins."""

    code: int
    message: str


class Failed(Exception):
    """It was tried and did not work."""


class Refused(Exception):
    """It must not be done."""


class NothingToDo(Refused):
    """The operation does not apply to this node."""


@dataclass(slots=True)
class Run:
    """One start of a program: on which node, of which operation, and what it is told. `target` may be another node.

    `sentence` is what it has left as its last one before its end; `stopped`: SIGTERM came, and what runs is cancelled.
    `mark()` is equal to an earlier one only where every read of the program is answered as it was then.
    """

    node: NodeModel
    target: NodeModel | None
    template: str
    env: dict[str, str]
    client: Client
    chance: Random
    parameters: dict[str, Any] = field(default_factory=dict)
    sentence: str = ""
    stopped: bool = False
    mark: Callable[[], object] = object  # no two are equal: nobody can tell

    @property
    def attempt(self) -> str:
        """The NodeOperation that it was started for."""
        return self.env.get("ATTEMPT_ID", "")

    def number(self, name: str, default: float, least: float = 0.0) -> float:
        """A number of PARAMETERS. Raises Refused for anything else."""
        value = self.parameters.get(name, default)
        try:
            parsed = float(value)
        except (TypeError, ValueError):
            parsed = float("nan")
        if not parsed >= least:
            raise Refused(f"PARAMETERS.{name} is {value!r}: write a number from {least:g}")
        return parsed

    async def take(self, least: float, most: float) -> None:
        """Work for so many seconds."""
        await asyncio.sleep(self.chance.uniform(least, most))


Program = Callable[[Run], Awaitable[Ended]]
Work = Callable[[Run], Awaitable[str]]  # returns the last sentence, or raises it


def main(work: Work) -> Program:
    """What a program does around its work: it reads PARAMETERS, and turns what is raised into an end."""

    async def program(run: Run) -> Ended:
        try:
            run.parameters = _parameters(run.env.get("PARAMETERS") or "{}")
            return Ended(DONE, await work(run))
        except NothingToDo as nothing:
            return Ended(REFUSED, f"nothing to do: {nothing}")
        except Refused as refusal:
            return Ended(REFUSED, f"refused: {refusal}")
        except Failed as failure:
            return Ended(FAILED, f"failed: {failure}")
        except asyncio.CancelledError:
            if not run.stopped:
                raise
            return Ended(STOPPED, "stopped by SIGTERM")

    return program


def _parameters(text: str) -> dict[str, Any]:
    try:
        parameters = json.loads(text)
    except ValueError as error:
        raise Refused("PARAMETERS is not JSON") from error
    if not isinstance(parameters, dict):
        raise Refused("PARAMETERS is not a JSON object")
    return parameters


def require_fresh(run: Run) -> None:
    """Raise Refused in another boot than the expected one, and where the attempt has left its marker before."""
    expected = run.env.get("EXPECTED_BOOT_ID", "")
    if not expected or not run.attempt:
        raise Refused("EXPECTED_BOOT_ID and an ATTEMPT_ID that can name a file are needed")
    if run.node.boot_id != expected:
        raise Refused(f"boot id is {run.node.boot_id}, not {expected}: it was rebooted since")
    if run.attempt in run.node.markers:
        raise Refused(f"attempt {run.attempt} was started before in this boot")


def leave_marker(run: Run) -> None:
    """Let this be the only start of the attempt in this boot."""
    require_fresh(run)
    run.node.markers.add(run.attempt)


def plainly(least: float, most: float) -> Program:
    """A program of a template of which nothing more is known: it takes so many seconds, and cures what it cures."""

    async def program(run: Run) -> Ended:
        await run.take(least, most)
        run.node.treat(run.template)
        return Ended(DONE, f"{run.template} of {run.node.name} is done")

    return program
