"""What a node's network must have: all that it once had in this boot, and what an operator requires. Pure.

Each such thing is a Fact under a key that begins with its kind: "card eth0", "link eth0", "slave bond0 eth1",
"address eth0 IPv4", "route IPv4", "gid mlx5_0/1", "rate mlx5_0/1 400".
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from nodelib.contract.npd import Verdict
from nodelib.net.addresses import IPV4, Addresses
from nodelib.net.links import Port
from nodelib.net.rdma import Gids
from nodelib.state.debounce import Streak, lasts

PATIENCE = 240.0  # seconds: a switch that reboots takes no longer
RUNS = {"card": 3}  # a card does not come back by itself
LACKS = {"gone": "has left the bus", "driverless": "has lost its driver"}


class Fact(NamedTuple):
    """Whether something is as it should be, None for nobody can tell; `lack`: what to say otherwise.

    `required`: whether the node had it before or not.
    """

    holds: bool | None
    lack: str
    required: bool = False


class NetworkReadings(NamedTuple):
    """All that was read in one run.

    `ports`: interfaces and RDMA ports; `uppers`: interfaces with one that each is built on; `slaves` by bond;
    `addresses`: or, as a text, why there are none; `devices`: what became of the devices of ports that are no more.
    """

    ports: Mapping[str, Port]
    uppers: Mapping[str, str]
    slaves: Mapping[str, Collection[str]]
    addresses: Addresses | str
    gids: Mapping[str, Gids]
    devices: Mapping[str, str]


def facts(
    seen: NetworkReadings, required: Iterable[str], had: Collection[str], rates: Iterable[tuple[str, float]] = ()
) -> dict[str, Fact]:
    """Return what is, what is no more, and what is required, by key. `rates`: patterns of ports, and their Gb/s."""
    facts_by_key = {f"card {name}": Fact(True, "") for name in seen.ports}
    facts_by_key.update({f"link {name}": Fact(port.up, port.lack) for name, port in seen.ports.items()})
    facts_by_key.update(
        {f"slave {bond} {name}": Fact(True, "") for bond, slaves in seen.slaves.items() for name in slaves}
    )
    facts_by_key.update(_addresses(seen))
    facts_by_key.update(_rates(seen, had, [*rates]))
    facts_by_key.update({f"gid {name}": fact for name, gids in seen.gids.items() for fact in _gid(seen, name, gids)})
    for key in sorted(set(had) - set(facts_by_key)):
        lack = _lack(seen, *key.split(" "))
        if lack:
            facts_by_key[key] = Fact(False, lack)
    for name in required:
        facts_by_key.update(_required(seen, name))
    return facts_by_key


def _required(seen: NetworkReadings, name: str) -> dict[str, Fact]:
    ports = {port: seen.ports[port] for port in seen.ports if name in (port, port.partition("/")[0])}
    if not ports:
        return {f"link {name}": Fact(False, f"{name} is not there", required=True)}
    return {f"link {port}": Fact(about.up, about.lack, required=True) for port, about in ports.items()}


def _rates(seen: NetworkReadings, had: Collection[str], declared: Sequence[tuple[str, float]]) -> dict[str, Fact]:
    """Hold the rate of each RDMA port that is up against the best that it had, or against what is declared."""
    rates = {}
    for name, port in seen.ports.items():
        if not port.up or not port.rate:
            continue
        due = max((rate for pattern, rate in declared if _fits(name, pattern)), default=0.0)
        best = due or max((float(key.split(" ")[2]) for key in had if key.startswith(f"rate {name} ")), default=0.0)
        best = max(best, 0.0 if due else port.rate)
        slow = f"{name} runs at {port.speed}, not at {best:g}"
        rates[f"rate {name} {best:g}"] = Fact(port.rate >= best, slow, required=bool(due))
    return rates


def _fits(name: str, pattern: str) -> bool:
    return any(fnmatchcase(part, pattern) for part in (name, name.partition("/")[0]))


def _addresses(seen: NetworkReadings) -> dict[str, Fact]:
    if isinstance(seen.addresses, str):
        return {"route": Fact(None, f"addresses cannot be read: {seen.addresses}")}
    owners = {f"address {name} {family}" for name, family in seen.addresses.owners if name in seen.uppers}
    return {key: Fact(True, "") for key in [*owners, *(f"route {family}" for family in seen.addresses.defaults)]}


def _gid(seen: NetworkReadings, name: str, gids: Gids) -> list[Fact]:
    """Judge an active RoCE port: RDMA over IP needs the address of its interface as a RoCE v2 GID, too."""
    if (
        not seen.ports.get(name)
        or not seen.ports[name].up
        or not any(kind.endswith(("v1", "v2")) for kind in gids.kinds)
    ):
        return []
    lack = f"{name} is ACTIVE but has no RoCE v2 address"
    if "RoCE v2" not in gids.kinds:
        return [Fact(False, lack, required=True)]
    owners = seen.addresses.owners if isinstance(seen.addresses, Addresses) else frozenset()
    built_on = {upper for upper, lower in seen.uppers.items() if _bottom(seen, lower) in gids.interfaces}
    needed = any((interface, IPV4) in owners for interface in gids.interfaces | built_on)
    return [Fact(gids.mapped or not needed, f"{lack} for the IPv4 one of its interface", required=True)]


def _bottom(seen: NetworkReadings, name: str) -> str:
    while seen.uppers.get(name, name) != name:
        name = seen.uppers[name]
    return name


def _lack(seen: NetworkReadings, kind: str, name: str = "", other: str = "") -> str:
    """Return what to say of something that was there and is no more; "" where that is no fault."""
    where = seen.devices.get(name, "")
    if kind == "card":
        return f"{name} is gone: its card {LACKS[where]}" if where in LACKS else ""
    if kind == "slave" and name in seen.slaves:
        return f"{name} has lost its slave {other}"
    if kind == "address" and name in seen.uppers:  # one that is gone itself is told of as a card, or a person's doing
        return "" if isinstance(seen.addresses, str) else f"{name} has no {other} address any more"
    if kind == "route":
        return "" if isinstance(seen.addresses, str) else f"the {name} default route is gone"
    if kind == "gid" and name in seen.ports and seen.ports[name].up:
        return f"{name} is ACTIVE but has no RoCE v2 address"
    return ""


def judge_facts(
    known: Mapping[str, Fact], had: Collection[str], standing: Mapping[str, Streak], now: float
) -> dict[str, Verdict]:
    """Turn facts into texts with verdicts. Ports that were never up in this boot are none's business."""
    texts = {}
    for key, fact in known.items():
        if fact.holds is None:
            texts[fact.lack] = Verdict.UNKNOWN
        elif not fact.holds and (fact.required or key in had):
            kind = key.partition(" ")[0]
            lasting = lasts(standing.get(key), now, 0.0 if kind in RUNS else PATIENCE, RUNS.get(kind, 2))
            texts[fact.lack if lasting else f"{fact.lack}, not for long yet"] = (
                Verdict.FAULT if lasting else Verdict.UNKNOWN
            )
    return texts


def lacking(known: Mapping[str, Fact]) -> list[str]:
    """Return the keys of what is not as it should be."""
    return [key for key, fact in known.items() if fact.holds is False]


def learn(known: Mapping[str, Fact], had: Iterable[str], seen: NetworkReadings) -> set[str]:
    """Return all that the node had in this boot by now; what was given to a Pod or renamed is forgotten."""
    moved = {name for name, where in seen.devices.items() if where == "bound"}
    kept = {key for key in had if not moved & set(key.split(" ")[1:])}
    return kept | {key for key, fact in known.items() if fact.holds}
