"""What goes wrong at GitHub and on the way to it, and what users do to issues there."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.github import GithubFault, Issue
from remediator_sim.simulation.clock import now, true_time, until
from remediator_sim.simulation.hub import Hub
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn
from remediator_sim.simulation.wire import WireFault

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

METHODS = ("GET", "POST", "PATCH")
WRITES = ("POST", "PATCH")
PATIENCE = 600.0  # seconds after which a process dies though the request at which it should die never came
WORDS, LABEL = "I am on it.", "mine"
CRASH = "github-crash"


def _draw_away(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(seconds=chance.choice((20, 300, 900)))


async def _away(world: "World", step: Step) -> None:
    world.hub.away = True
    await asyncio.sleep(step["seconds"])
    world.hub.away = False


def _draw_slow(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(late=chance.choice((3.0, 12.0)), seconds=chance.choice((60, 600)))


async def _slow(world: "World", step: Step) -> None:
    world.hub.slow = step["late"]
    await asyncio.sleep(step["seconds"])
    world.hub.slow = 0.0


def _draw_lag(chance: Random, fleet: Fleet) -> Drawn:
    gives_up = chance.random() < 0.3
    return drawn(search=chance.choice((60, 300)), listing=chance.choice((0, 30, 300)), gives_up=gives_up, seconds=900)


async def _lag(world: "World", step: Step) -> None:
    """Search and lists show what was some time ago."""
    world.hub.github.lag(search=step["search"], listing=step["listing"], gives_up=step["gives_up"])
    await asyncio.sleep(step["seconds"])
    world.hub.github.lag(search=0.0, listing=0.0)


def _draw_limit(chance: Random, fleet: Fleet) -> Drawn:
    status, count, retry = chance.choice((403, 429)), chance.randint(1, 2), chance.choice((None, 5, 90, 600))
    return drawn(limit=chance.choice(("primary", "secondary")), status=status, count=count, retry=retry)


async def _limit(world: "World", step: Step) -> None:
    if step["limit"] == "primary":
        reset = round(true_time().timestamp()) + (step["retry"] or 900)
        fault = GithubFault.primary(reset=reset, status=step["status"])
    else:
        fault = GithubFault.secondary(status=step["status"], retry_after=step["retry"])
    for method in METHODS:
        world.hub.github.fail(method, "/issues", fault, step["count"])


LOST = {
    "no answer": GithubFault(carried_out=True, silent=True),
    "answer lost": GithubFault(carried_out=True, drop=True),
    "error though done": GithubFault(502, carried_out=True),
    "request lost": GithubFault(drop=True),
    "page of a proxy": GithubFault(503, text="<html>away</html>"),
}


def _draw_lost(chance: Random, fleet: Fleet) -> Drawn:
    method, what = chance.choice(("POST", "POST", "PATCH", "GET")), chance.choice(sorted(LOST))
    return drawn(method, what=what, count=chance.randint(1, 3))


async def _lost(world: "World", step: Step) -> None:
    path = "/issues$" if step.target == "POST" else "/issues"  # of comments one is seldom missed
    world.hub.github.fail(step.target, path, LOST[step["what"]], step["count"])


def _draw_token(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(seconds=chance.choice((0.2, 20, 400)))


async def _token(world: "World", step: Step) -> None:
    """GitHub takes another token, and the file holds it some time later."""
    world.hub.github.rotate_token()
    await asyncio.sleep(step["seconds"])
    world.hub.write_token()


def _draw_crash(chance: Random, fleet: Fleet) -> Drawn:
    how = chance.choice(("die-before", "die-after", "die-after"))
    part, back = chance.choice(("/issues", "/comments", "/issues/")), chance.choice((1, 20, 120))
    return drawn("leader", how=how, part=part, back=back)


async def _crash(world: "World", step: Step) -> None:
    """A process dies at what it asks of GitHub: between an issue and the record of its number, for one."""
    model = world.replica(step.target)
    if model is None or model.line is None:
        return
    model.line.faults.append(WireFault(step["how"], 1, methods=WRITES, part=step["part"]))
    line, latest = model.line, now() + PATIENCE
    world.armed_crashes += 1
    await until(lambda: line.dead or now() > latest, 1.0)
    world.armed_crashes -= 1
    if not line.dead:
        line.faults.clear()
        return
    await asyncio.sleep(step["back"])
    model.start()


# --- users ---------------------------------------------------------------------------------------------------


def _close(hub: Hub, issue: Issue) -> None:
    hub.ann.close(issue.repository, issue.number, "not_planned")


def _reopen(hub: Hub, issue: Issue) -> None:
    hub.ann.reopen(issue.repository, issue.number)


def _retitle(hub: Hub, issue: Issue) -> None:
    hub.ann.edit(issue.repository, issue.number, title="what a user calls it")


def _delete(hub: Hub, issue: Issue) -> None:
    hub.ann.delete(issue.repository, issue.number)


ACTIONS: dict[str, Callable[[Hub, Issue], None]] = {
    "close": _close,
    "reopen": _reopen,
    "retitle": _retitle,
    "write": lambda hub, issue: hub.write(issue, WORDS),
    "label": lambda hub, issue: hub.label(issue, LABEL),
    "delete": _delete,
    "move": lambda hub, issue: hub.move(issue),
}


def _draw_issue(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(what=chance.choice(sorted(ACTIONS)), pick=chance.random())


async def _issue(world: "World", step: Step) -> None:
    """A user does something to an issue, as soon as there is one that fits."""
    latest = now() + PATIENCE

    def fits() -> list[Issue]:
        return [issue for issue in world.hub.there() if issue.open is not (step["what"] == "reopen")]

    await until(lambda: bool(fits()) or now() > latest, 5.0)
    if issues := fits():
        issue = issues[int(step["pick"] * len(issues))]
        world.note("user", f"does {step['what']} to {issue.repository}#{issue.number}")
        ACTIONS[step["what"]](world.hub, issue)
        world.hub.look()


KINDS = (
    StepKind("github-away", 1, _draw_away, _away),
    StepKind("github-slow", 1, _draw_slow, _slow),
    StepKind("github-lag", 1, _draw_lag, _lag),
    StepKind("github-limit", 2, _draw_limit, _limit),
    StepKind("github-lost", 3, _draw_lost, _lost),
    StepKind("github-token", 1, _draw_token, _token),
    StepKind(CRASH, 3, _draw_crash, _crash),
    StepKind("issue", 4, _draw_issue, _issue),
)
