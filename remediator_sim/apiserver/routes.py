"""Paths: which kind, namespace, name and subresource a URL speaks of."""

from remediator_sim.apiserver.resources import Registry, Resource
from remediator_sim.apiserver.writes import Target

KEPT = 4096  # paths that are known: a Lease is asked for again and again


def resolve(registry: Registry, path: str) -> Target | None:
    """The target of a path, or None where nothing is served there."""
    known = registry.resolved
    if path not in known:
        if len(known) >= KEPT:
            known.clear()
        known[path] = _resolve(registry, path)
    target: Target | None = known[path]
    return target


def _resolve(registry: Registry, path: str) -> Target | None:
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        return _target(registry.find(group, version, rest[2]), rest[1], rest[3:], namespaced=True)
    return _target(registry.find(group, version, rest[0]), "", rest[1:], namespaced=False)


def _target(resource: Resource | None, namespace: str, rest: list[str], *, namespaced: bool) -> Target | None:
    """A namespaced kind is reached inside a namespace; outside of one only all of it can be listed."""
    if resource is None or len(rest) > 2 or (namespaced and not resource.namespaced):
        return None
    if resource.namespaced and not namespaced and rest:
        return None
    target = Target(resource, namespace, *rest)
    return target if not target.sub or target.sub in _subresources(resource) else None


def _subresources(resource: Resource) -> set[str]:
    return {name for name, _, _ in resource.subresources} | ({"status"} if resource.status else set())
