"""Alertmanager posts until it is heard, and tells of the end."""

import asyncio
from random import Random

import msgspec

from remediator_sim.simulation import loop
from remediator_sim.simulation.alerts import REPEAT, Alertmanager
from remediator_sim.simulation.clock import now


class Never(Random):
    """Draws nothing that is rare."""

    def random(self):
        return 0.999


class Webhook:
    """Answers in this order, then 200."""

    def __init__(self, *answers):
        self.answers, self.posts = list(answers), []

    async def post(self, body):
        alerts = msgspec.json.decode(body)["alerts"]
        self.posts.append((round(now()), [alert["status"] for alert in alerts]))
        return self.answers.pop(0) if self.answers else 200


def posts(*answers, seconds):
    """What is posted of one alert that fires for so many seconds, and which were taken before its end and after it."""
    webhook = Webhook(*answers)

    async def story():
        manager = Alertmanager([webhook], Never(1), lambda who, text: None)
        alert = manager.fire("NodeDown", "gpu-17")
        await asyncio.sleep(seconds)
        taken = manager.taken()
        manager.resolve(alert)
        await asyncio.sleep(300)
        return taken, manager.taken()

    return webhook.posts, *loop.run(story())


def test_a_group_is_posted_each_minute_until_it_is_taken_and_its_end_once():
    told, taken, after = posts(None, 503, seconds=400)
    assert told == [(30, ["firing"]), (90, ["firing"]), (150, ["firing"]), (450, ["resolved"])]
    assert (taken, after) == (["NodeDown-gpu-17"], [])


def test_an_alert_that_goes_on_is_posted_again_after_the_interval():
    told, _, _ = posts(seconds=REPEAT + 100)
    assert [at for at, words in told if words == ["firing"]] == [30, 30 + REPEAT]


def test_an_alert_that_nobody_took_is_not_among_those_that_were():
    _, taken, _ = posts(*[503] * 10, seconds=400)
    assert taken == []
