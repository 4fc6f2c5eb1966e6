"""What goes wrong in a configuration of kube-scheduler with extenders, often without a word. Pure.

"Refused" is said of what kube-scheduler itself does not start with; all else it takes.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec

from remediator.core.kubernetes_version import Kubernetes
from remediator.kube.api.shared_gpus import MEMORY
from remediator.scheduler.config.shape import Configuration, Extender, Profile, read, scoring, weight
from remediator.scheduler.config.versions import GROUP, KIND, READ
from remediator.scheduler.config.weights import WEIGHTS, Weight
from remediator.scheduler.packing.points import Score

FIT = "NodeResourcesFit"
SPREADING = 100  # points of a plugin between an empty node and a full one
SLOW = 5.0  # seconds, which is the default
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+|0")
_PARTS = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DEFAULT = Profile()


class Trap(NamedTuple):
    """One trap: where it is ("extenders[0].weight"), and what happens and what helps."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


def traps(document: Any, kubernetes: Kubernetes | None = None, score: Score = Score.FGD) -> list[Trap]:
    """Everything in a configuration that a user should look at, in the order of the file.

    `kubernetes`: the version that is to read it; None where it is not known. `score`: how extenders score.
    """
    try:
        config, counts = read(document), WEIGHTS[score]
        rest = (*(trap for check in _CHECKS for trap in check(config)), *_scores(config, counts))
        return [*_head(config, kubernetes), *rest]
    except msgspec.ValidationError as error:
        return [Trap("", f"kube-scheduler refuses it: {error}")]


def _head(config: Configuration, kubernetes: Kubernetes | None) -> Iterator[Trap]:
    if config.kind == "Policy":
        yield Trap("kind", f"Policy was removed in Kubernetes 1.23; write a {KIND} (`remediator extender config`)")
        return
    if config.kind != KIND:
        yield Trap("kind", f"is {config.kind!r}, not {KIND}; nothing else is read by --config")
    group, _, version = config.api_version.partition("/")
    known = READ.get(version) if group == GROUP else None
    if known is None:
        yield Trap("apiVersion", f"is {config.api_version!r}; write {GROUP}/v1 ({READ['v1']})")
    elif kubernetes is not None and not known.by(kubernetes):
        yield Trap("apiVersion", f"{version} is read by {known}, not by {kubernetes}")


def _each(check: Callable[[Extender], Iterator[Trap]]) -> Callable[[Configuration], Iterator[Trap]]:
    """A check of one extender as a check of all."""

    def checked(config: Configuration) -> Iterator[Trap]:
        for index, extender in enumerate(config.extenders or ()):
            for place, message in check(extender):
                yield Trap(f"extenders[{index}]" + (f".{place}" if place else ""), message)

    return checked


def _address(extender: Extender) -> Iterator[Trap]:
    if not re.match("https?://[^/]", extender.url_prefix):
        yield Trap("urlPrefix", f"is {extender.url_prefix!r}; write https://ADDRESS:PORT/PATH")
    elif extender.url_prefix.startswith("http:") and (extender.enable_https or extender.tls_config):
        yield Trap("urlPrefix", "says http: enableHTTPS and tlsConfig do not change that; write https")
    if not any((extender.filter_verb, extender.prioritize_verb, extender.preempt_verb, extender.bind_verb)):
        yield Trap("", "has no verb, so it is never called; set filterVerb or prioritizeVerb")


def _trust(extender: Extender) -> Iterator[Trap]:
    tls = extender.tls_config
    authority = tls is not None and bool(tls.ca_file or tls.ca_data)
    if tls is not None and tls.insecure and authority:
        yield Trap("tlsConfig.insecure", "is refused beside an authority; remove it")
    elif extender.url_prefix.startswith("https") and extender.enable_https and not authority:
        message = "is not set: with enableHTTPS alone the scheduler believes any certificate; name the authority"
        yield Trap("tlsConfig.caFile", message)
    if tls is not None and bool(tls.cert_file or tls.cert_data) is not bool(tls.key_file or tls.key_data):
        yield Trap("tlsConfig", "has one of certificate and key, and is refused; set both")


def _scores(config: Configuration, counts: Weight) -> Iterator[Trap]:
    """What depends on how extenders score. Raises ValidationError."""
    yield from _each(partial(_weight, counts))(config)
    yield from _fighting(config, counts)


def _weight(counts: Weight, extender: Extender) -> Iterator[Trap]:
    if not extender.prioritize_verb:
        return
    if extender.weight is None or extender.weight <= 0:
        shown = "not set" if extender.weight is None else extender.weight
        yield Trap("weight", f"is {shown}: beside prioritizeVerb it must be more than 0; write {counts.write}")
    elif extender.weight > counts.most:
        message = f"is {extender.weight}: scores {counts.scores} then outweigh what users prefer, such as affinity"
        yield Trap("weight", f"{message}; write {counts.write}")


def _ignorable(extender: Extender) -> Iterator[Trap]:
    if extender.bind_verb and extender.ignorable:
        message = (
            "must be false beside bindVerb: from Kubernetes 1.30 on, the scheduler binds by itself while the extender"
            " does not answer, without what the extender would have written"
        )
        yield Trap("ignorable", message)
    elif not extender.bind_verb and not extender.ignorable:
        yield Trap("ignorable", "is false: while the extender does not answer, no Pod of its is scheduled; write true")


def _time(extender: Extender) -> Iterator[Trap]:
    text = extender.http_timeout
    if text is not None and not _DURATION.fullmatch(text):
        yield Trap("httpTimeout", f"is {text!r}, no duration, and is refused; write 500ms")
        return
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(text or ""))
    if not 0 < seconds < SLOW:
        message = f"is {text or 'not set'}: the scheduler places nothing while it waits so long (5s where not set)"
        yield Trap("httpTimeout", f"{message}; write 500ms")


def _whole_nodes(extender: Extender) -> Iterator[Trap]:
    if not extender.node_cache_capable and (extender.filter_verb or extender.prioritize_verb):
        message = "is false: whole Nodes are sent, 100 MB a request at 5,000 nodes; write true where the extender can"
        yield Trap("nodeCacheCapable", message)


def _managed(extender: Extender) -> Iterator[Trap]:
    for index, resource in enumerate(extender.managed_resources or ()):
        place = f"managedResources[{index}]"
        if not _RESOURCE.fullmatch(resource.name):
            message = f"{resource.name!r} is no extended resource, and is refused; write one such as nvidia.com/gpu"
            yield Trap(f"{place}.name", message)
        if resource.name == MEMORY and not extender.bind_verb:
            message = (
                f"{MEMORY} needs bindVerb: without it the scheduler binds these Pods to no card, and nobody can tell"
                " what is free; `remediator extender config --shared-gpus` writes the entry"
            )
            yield Trap(f"{place}.name", message)
        if resource.ignored_by_scheduler and not extender.bind_verb:
            message = (
                "is true: no profile counts the resource any more, and more Pods than GPUs are placed; write false"
            )
            yield Trap(f"{place}.ignoredByScheduler", message)


def _binders(config: Configuration) -> Iterator[Trap]:
    binders = [index for index, extender in enumerate(config.extenders or ()) if extender.bind_verb]
    for index in binders[1:]:
        yield Trap(f"extenders[{index}].bindVerb", f"is refused: extenders[{binders[0]}] binds already; only one may")


def _twice(config: Configuration) -> Iterator[Trap]:
    rows = [(at, name) for at, extender in enumerate(config.extenders or ()) for name in extender.resources]
    count = Counter(name for _, name in rows)
    for index, name in dict.fromkeys(rows):
        first = next(at for at, other in rows if other == name)
        if count[name] > 1 and (index != first or rows.count((index, name)) > 1):
            message = f"{name} is refused: extenders[{first}] manages it already; a resource may stand in one list once"
            yield Trap(f"extenders[{index}].managedResources", message)


def _profiles(config: Configuration) -> Iterator[Trap]:
    names = [profile.scheduler_name for profile in config.profiles or ()]
    for name, count in Counter(names).items():
        if count > 1:
            yield Trap("profiles", f"{name} is refused: it is there {count} times")
    for index, extender in enumerate(config.extenders or ()):
        if len(names) > 1 and not extender.resources:
            message = "is not set: the extender is asked for Pods of every profile; a second kube-scheduler has its own"
            yield Trap(f"extenders[{index}].managedResources", message)


def _lease(config: Configuration) -> Iterator[Trap]:
    names = {profile.scheduler_name for profile in config.profiles or (_DEFAULT,)}
    election = config.leader_election
    if "default-scheduler" not in names and election.leader_elect and election.resource_name == "kube-scheduler":
        message = "is that of the cluster's scheduler: only one of the two would work; write a name of its own"
        yield Trap("leaderElection.resourceName", message)


def _fighting(config: Configuration, of: Weight) -> Iterator[Trap]:
    """Plugins that spread the Pods which an extender packs. Raises ValidationError."""
    scorers = [each for each in config.extenders or () if each.prioritize_verb and (each.weight or 0) > 0]
    for index, profile in enumerate(config.profiles or (_DEFAULT,)):
        place, strategy, counts = f"profiles[{index}]", scoring(profile), weight(profile, FIT)
        managed = {name for each in scorers for name in each.resources}
        counted = {resource.name for resource in strategy.resources or ()}
        if not counts or not scorers:
            continue
        if _spreads(strategy.type, [point.score for point in _shape(strategy)]):
            least = min(each.weight or 0 for each in scorers)
            if managed & counted:
                message = f"spreads {' and '.join(sorted(managed & counted))}, which an extender packs; "
                yield Trap(f"{place}: {FIT}", message + "leave them out, or take RequestedToCapacityRatio")
            elif SPREADING * counts > of.step * least:
                ours = f"one GPU of the extender {of.step * least}: Pods are spread"
                message = f"{strategy.type} counts up to {SPREADING * counts}, {ours}; "
                yield Trap(f"{place}: {FIT}", message + f"write {of.write} as the weight of the extender")


def _shape(strategy: Any) -> Any:
    ratio = strategy.requested_to_capacity_ratio
    return (ratio.shape or ()) if ratio is not None else ()


def _spreads(kind: str, scores: list[int]) -> bool:
    """Whether an empty node gets more than a full one."""
    return kind == "LeastAllocated" or (kind == "RequestedToCapacityRatio" and bool(scores) and scores[-1] < scores[0])


_CHECKS: tuple[Callable[[Configuration], Iterator[Trap]], ...] = (
    _lease,
    _profiles,
    *map(_each, (_address, _trust, _ignorable, _time, _whole_nodes, _managed)),
    _binders,
    _twice,
)
