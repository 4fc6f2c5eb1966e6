"""Which domains a Pod of a gang prefers. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from remediator.scheduler.gang.topology import Domain


def preferred(siblings: Iterable[Domain], rooms: Mapping[Domain, int], size: int) -> list[Domain]:
    """The domains to prefer, the widest first.

    `siblings`: the domains of the node of each Pod of the gang that has one: of each level the domain with most Pods is
    preferred. For the first Pod, `size` is how many there will be, 0 where nobody says: then a domain of the narrowest
    level in which some have room for all, of these the one with least room; where none has, the one with most room.
    """
    counts = Counter(siblings)
    if counts:
        levels = sorted({domain.level for domain in counts})
        return [max((each for each in counts if each.level == level), key=lambda d: (counts[d], d)) for level in levels]
    open_domains = {domain: room for domain, room in rooms.items() if room > 0}
    enough = [domain for domain, room in open_domains.items() if size and room >= size]
    if enough:
        narrowest = max(domain.level for domain in enough)
        return [min((each for each in enough if each.level == narrowest), key=lambda d: (open_domains[d], d))]
    levels = sorted({domain.level for domain in open_domains}, reverse=not size)[:1]
    return [
        max((each for each in open_domains if each.level == level), key=lambda d: (open_domains[d], d))
        for level in levels
    ]
