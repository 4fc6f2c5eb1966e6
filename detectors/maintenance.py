#!/usr/bin/env -S python3 -I -S -B
"""Condition CloudMaintenance: the cloud has planned to stop this machine, and begins within --ahead hours.

Which cloud it is tells the firmware (/sys/class/dmi/id); a machine of none asks nobody. Its metadata service is asked
on its link-local address: AWS (IMDSv2: scheduled events), Google Cloud (maintenance-event, upcoming-maintenance) and
Azure (scheduled events that name this machine; the first request switches them on, and may be answered after two
minutes). Oracle Cloud's service tells of no maintenance: nobody asks it, and the text says so. What only pauses the
machine (a live migration, Azure's Freeze, AWS's system-maintenance) counts with --pauses. The text names what is
planned, when it begins, and its id.

Told as "cannot tell": a service that does not answer, or whose answer makes no sense. "no answer in time": run
node-problem-detector with hostNetwork, as the hop limit of many machines is 1; let a firewall of the node let root
reach 169.254.169.254; switch the service on.

Remedy: move the work away before it begins (the shipped policy drains), or stop and start the machine at a time of your
own where the cloud allows it.

Exit codes: 0 nothing begins soon, 1 it does, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import time
from collections.abc import Collection
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Nothing, Run, explain, main, parser
from nodelib.contract.npd import Verdict
from nodelib.net.maintenance import CLOUDS, PlannedEvent, UnknownReply, cloud_of

AHEAD = 4.0  # hours
SHOWN = 3  # events in a line


class Plans(NamedTuple):
    """What was learnt. `why`: why nobody knows what is planned, "" where it is known."""

    cloud: str
    events: Collection[PlannedEvent] = ()
    why: str = ""


def judge(plans: Plans, wall: float, ahead: float, pauses: bool) -> tuple[Verdict, str]:
    """Turn plans into a verdict and its line. `wall`: Unix seconds; `ahead`: hours; `pauses`: whether those count."""
    if plans.why:
        return Verdict.UNKNOWN, plans.why
    if not plans.cloud:
        return Verdict.OK, "this machine is of no cloud that tells of maintenance"
    if plans.cloud not in CLOUDS:
        return Verdict.OK, f"the metadata service of {plans.cloud} does not tell of maintenance: look at its console"
    soon = [
        event
        for event in plans.events
        if (event.stops or pauses) and (event.start is None or event.start - wall <= ahead * 3600)
    ]
    if not soon:
        return Verdict.OK, f"{plans.cloud} begins no maintenance soon"
    texts = sorted({told(event) for event in soon})
    more = "" if len(texts) <= SHOWN else ", and more"
    return Verdict.FAULT, f"{plans.cloud} plans {', '.join(texts[:SHOWN])}{more}"


def told(event: PlannedEvent) -> str:
    """Return the words for one event: what, from when on, and its id."""
    if event.start is None:
        return f"{event.kind} at any moment ({event.id})"
    return f"{event.kind} from {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(event.start))} on ({event.id})"


def look(options: argparse.Namespace) -> Plans:
    """Return what the cloud of this machine has planned for it."""
    cloud = cloud_of(options.sys)
    if cloud not in CLOUDS:
        return Plans(cloud)
    from nodelib.net.metadata import SERVICE, asker  # who is of no cloud needs no sockets

    try:
        return Plans(cloud, CLOUDS[cloud](asker(options.metadata or SERVICE, options.deadline)))
    except TimeoutError:
        why = "no answer in time"
    except UnknownReply as error:
        why = str(error)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
    return Plans(cloud, why=f"the metadata service of {cloud} cannot be asked: {why}")


def check(run: Run[Nothing]) -> Findings:
    """One run: learn the cloud, ask it, judge."""
    options = run.options
    plans = look(options)
    verdict, line = judge(plans, time.time() if options.wall is None else options.wall, options.ahead, options.pauses)
    planned = [event._asdict() for event in plans.events]
    return Findings(
        verdict,
        line,
        evidence=lambda: {"cloud": plans.cloud, "planned": planned[:SHOWN]},
        explain=lambda: explain({"cloud": plans.cloud, "planned": planned}, {}, verdict),
    )


def service(text: str) -> str:
    """Read --metadata."""
    from nodelib.net.metadata import place

    return place(text)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 5.0, "all answers together")
    options.add_argument(
        "--ahead", type=float, default=AHEAD, help="hours before its start from which a plan counts (%(default)s)"
    )
    options.add_argument("--pauses", action="store_true", help="count also what only pauses the machine")
    options.add_argument(
        "--metadata",
        type=service,
        metavar="ADDRESS:PORT",
        help="where the metadata service is, a link-local address (default: 169.254.169.254:80)",
    )
    options.add_argument("--wall", type=float, help="Unix seconds, instead of the clock")
    return options.parse_args(arguments)


DETECTOR = Detector("maintenance", "CloudMaintenance", check)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
