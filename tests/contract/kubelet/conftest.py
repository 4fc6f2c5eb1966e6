"""A node and a namespace on the server that a test is given."""

import pytest

from remediator_sim.kubelet.worker import ApiAddress
from tests.contract.kubelet.playing import Play


@pytest.fixture
async def play(server, tmp_path):
    play = Play(server.client, ApiAddress(server.url, server.ca_file), tmp_path)
    await play.set_up()
    yield play
    await play.tear_down()
