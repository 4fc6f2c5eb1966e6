"""The controller and the container that takes orders, each the real one, at one API server."""

import asyncio
from urllib.parse import urlsplit

import pytest
from take_orders import TakesOrders

from nodelib.contract import order
from nodelib.k8s.api import Api
from tests.harness.controller import Answer, controller_harness, running, until

pytestmark = pytest.mark.sampled("watchdog with controller")


def api_at(endpoint, folder):
    """What a Pod with a token knows of the API server."""
    (folder / "token").write_text("the-token-of-this-pod")
    (folder / "namespace").write_text("remediator-system")
    (folder / "ca.crt").write_bytes(endpoint.ca_file.read_bytes())
    where = urlsplit(endpoint.url)
    address = {"KUBERNETES_SERVICE_HOST": str(where.hostname), "KUBERNETES_SERVICE_PORT": str(where.port)}
    return Api(address, str(folder))


async def looking(takes_orders, condition):
    """Look as the container does, until `condition()`: a Pod that changes between a look and its write waits for the
    next look.
    """

    async def looked():
        await asyncio.to_thread(takes_orders.look)
        return condition()

    await until(looked)


async def test_what_the_controller_orders_is_taken_and_what_is_answered_is_believed(tmp_path, folders):
    """What carries it out is played here; then the fault goes."""
    orders, answers = folders
    async with controller_harness() as fleet:
        await fleet.template("restart-kubelet", runOn="Watchdog", timeout="8m")
        await fleet.policy(
            ladder=[{"operation": "restart-kubelet", "parameters": {"settleSeconds": "3"}, "attempts": 1}]
        )
        fleet.answer("restart-kubelet", Answer(starts=False))  # no kubelet starts it
        await fleet.node("gpu-1", gpu="True")
        async with fleet.server.serve() as endpoint, running(fleet):
            takes_orders = TakesOrders(api_at(endpoint, tmp_path), "gpu-1", orders, answers)
            await until(lambda: fleet.pods("restart-kubelet", "Pending"))
            await looking(takes_orders, lambda: order.attempts(orders, order.ORDER))
            (attempt,) = order.attempts(orders, order.ORDER)
            taken = order.take(orders, attempt)
            assert taken[:1] + taken[3:5] == ("restart-kubelet", "gpu-1", "boot-1")
            assert (taken.case, taken.parameters) == (
                fleet.cases("gpu-1")[0]["metadata"]["uid"],
                {"settleSeconds": "3"},
            )
            order.say(answers, attempt, order.OrderResult(0, "restarted kubelet"))
            await looking(takes_orders, lambda: not order.attempts(orders, order.ORDER))
            await fleet.condition("gpu-1", "False")
            await until(lambda: fleet.ended("gpu-1", "Recovered"))
        (tried,) = fleet.cases("gpu-1")[0]["status"]["attempts"]
    assert (tried["outcome"], tried["message"], order.attempts(orders, order.ORDER)) == (
        "Succeeded",
        "restarted kubelet",
        [],
    )
