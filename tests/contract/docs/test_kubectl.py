"""Every command of the pages that needs kubectl does what it says, on the embedded server and on the real one."""

import re
from collections.abc import Sequence

import pytest

from deploy.images.programs import binary
from tests.cluster.servers import serving
from tests.contract.docs.known import CLUSTER, EVERYWHERE, needs, on_embedded, tried, wanting
from tests.contract.docs.pages import Command, Recipe
from tests.contract.docs.terminal import Terminal, check
from tests.contract.docs.test_tables import bare, table
from tests.contract.docs.world import lay_out

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
# To stop, in the order of the page about safety → the word that `remediator explain` then says of the node's case.
STOPS = ("Paused", "PolicyPaused", "OptedOut", "HeldByUser")
ENFORCE = 'kubectl patch rp gpu-lost --type merge -p \'{"spec":{"mode":"Enforce"}}\''
EXPLAIN = "remediator explain NODE --kubeconfig FILE"
CLOSE = "remediator close-breaker {} --kubeconfig FILE"
DELETE = "kubectl delete --ignore-not-found -k"
HERE = EVERYWHERE | CLUSTER
RECIPES = [one for one in wanting(HERE) if any("kubectl" in command.text for command in one.commands)]
CASES = [(name, one) for name in ("http", "real") for one in RECIPES if name == "real" or on_embedded(one)]


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize(("name", "recipe"), CASES, ids=[f"{name}-{one.title}" for name, one in CASES])
async def test_a_command_with_kubectl_runs_and_prints_what_the_page_shows(
    name: str, recipe: Recipe, request, machine, tmp_path
) -> None:
    commands = tried(recipe, HERE)
    releases = any('"release":true' in command.text for command in commands)  # refused of any other case
    async with serving(name, request) as server:
        await lay_out(server.client, server.controller, escalated=releases)
        terminal = Terminal(tmp_path, server.kubeconfig, machine, kubectl=binary("kubectl"))
        async with terminal.answering(server.transport, any("curl" in needs(command) for command in commands)):
            made = await terminal.play(_applying(commands))
            assert not any(ran.code for ran in made), made
            check(recipe, commands, await terminal.play(commands))


def _applying(commands: Sequence[Command]) -> list[Command]:
    """What puts there the folders that a recipe deletes: which recipe stood before it differs by sample."""
    deleting = [one for one in commands if one.text.startswith(DELETE)]
    return [Command(one.text.replace(DELETE, "kubectl apply -k", 1)) for one in deleting]


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize(("at", "word"), [*enumerate(STOPS)], ids=STOPS)
async def test_what_the_page_about_safety_says_stops_a_case_and_its_undoing_lets_it_go_on(
    at: int, word: str, request, machine, tmp_path
) -> None:
    _, stop, undo = map(bare, table("safety.md", "to stop | do")[at])
    async with serving("http", request) as server:
        await lay_out(server.client, server.controller)
        terminal = Terminal(tmp_path, server.kubeconfig, machine, kubectl=binary("kubectl"))
        await terminal.play([Command(CLOSE.format(name)) for name in ("policy/gpu-lost", "budget/training")])
        told = await terminal.play([Command(text) for text in (ENFORCE, EXPLAIN, stop, EXPLAIN, undo, EXPLAIN)])
        assert [ran.code for ran in told] == [0] * 6
        before, after, undone = (re.findall(r"held: (\w+)", told[at].output) for at in (1, 3, 5))
        assert before == ["BudgetUnready"], "the ledger waits for a controller, and nothing else stands in the way"
        assert word in after, stop
        assert word not in undone, undo
