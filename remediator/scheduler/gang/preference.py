"""Which domains a Pod of a gang prefers, and why. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from remediator.scheduler.gang.topology import Domain


class GangReason(StrEnum):
    """Why these domains: one word, the same in metrics and in `why`."""

    NEAR_SIBLINGS = "NearSiblings"
    ROOM_FOR_ALL = "RoomForAll"
    MOST_ROOM = "MostRoom"
    ANYWHERE = "Anywhere"  # no domain has room, or the nodes have none of the labels


class Preference(NamedTuple):
    """The domains to prefer, the widest first."""

    why: GangReason
    domains: tuple[Domain, ...] = ()


def preferred(siblings: Iterable[Domain], rooms: Mapping[Domain, int], size: int) -> Preference:
    """The domains to prefer.

    `siblings`: the domains of the node of each Pod of the gang that has one: of each level the domain with most Pods is
    preferred. For the first Pod, `size` is how many there will be, 0 where nobody says: then a domain of the narrowest
    level in which some have room for all, of these the one with least room; where none has, the one with most room.
    """
    counts = Counter(siblings)
    if counts:
        levels = sorted({domain.level for domain in counts})
        most = (max((d for d in counts if d.level == level), key=lambda d: (counts[d], d)) for level in levels)
        return Preference(GangReason.NEAR_SIBLINGS, tuple(most))
    return _roomy(rooms, size)


def _roomy(rooms: Mapping[Domain, int], size: int) -> Preference:
    """For the first Pod."""
    open_domains = {domain: room for domain, room in rooms.items() if room > 0}
    enough = [domain for domain, room in open_domains.items() if size and room >= size]
    if enough:
        narrowest = max(domain.level for domain in enough)
        smallest = min((each for each in enough if each.level == narrowest), key=lambda d: (open_domains[d], d))
        return Preference(GangReason.ROOM_FOR_ALL, (smallest,))
    if not open_domains:
        return Preference(GangReason.ANYWHERE)
    level = (min if size else max)(domain.level for domain in open_domains)
    roomiest = max((each for each in open_domains if each.level == level), key=lambda d: (open_domains[d], d))
    return Preference(GangReason.MOST_ROOM, (roomiest,))
