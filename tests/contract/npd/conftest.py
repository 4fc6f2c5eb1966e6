"""A server for each module, on which all its cases run at the same time."""

import asyncio

import pytest_asyncio

from remediator_sim.npd import ForkServer, Processes
from tests.cluster.servers import serving
from tests.contract.npd.playing import Play


class Plays:
    """The cases of one module, each as a task."""

    def __init__(self, tasks):
        self._tasks = tasks

    async def outcome(self, kind, body):
        await self._tasks[kind, body]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plays(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("npd")
    wanted = {
        (item.callspec.params["kind"], item.function.body)
        for item in request.session.items
        if item.module is request.module and hasattr(item.function, "body")
    }
    async with serving("http", request) as server, ForkServer() as fork_server:
        runners = {"processes": Processes(), "fork server": fork_server}

        async def one(number, kind, body):
            play = Play(kind, server, runners, directory / str(number))
            await play.set_up()
            try:
                await body(play)
            finally:
                await play.tear_down()

        tasks = {case: asyncio.create_task(one(number, *case)) for number, case in enumerate(wanted)}
        yield Plays(tasks)
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
