"""Every command of the pages that needs only Python does what it says, on a simulated node and an embedded server."""

import shutil
from functools import cache

import pytest

from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from tests.contract.docs.known import EVERYWHERE, asks_a_server, needs, tried, wanting
from tests.contract.docs.pages import Recipe
from tests.contract.docs.terminal import Terminal, check
from tests.contract.docs.world import lay_out
from tests.harness.cluster import at_once


@cache
def _laid_out() -> EmbeddedServer:
    """What each test finds on a server of its own; laid out once."""
    server = EmbeddedServer()
    at_once(lay_out(Client(server.transport())))
    return server


@pytest.mark.sampled(rare=True)
@pytest.mark.parametrize("recipe", wanting(EVERYWHERE), ids=lambda recipe: recipe.title)
async def test_a_command_that_needs_only_python_runs_and_prints_what_the_page_shows(
    recipe: Recipe, machine, tmp_path
) -> None:
    commands = tried(recipe, EVERYWHERE)
    if any("curl" in needs(command) for command in commands) and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    server = EmbeddedServer(like=_laid_out()) if any(map(asks_a_server, commands)) else EmbeddedServer()
    async with server.serve() as endpoint:
        terminal = Terminal(tmp_path, endpoint.kubeconfig, machine, kubectl=None)
        async with terminal.answering(server.transport(), any("curl" in needs(command) for command in commands)):
            check(recipe, commands, await terminal.play(commands))
