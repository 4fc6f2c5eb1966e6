"""Which Pods of a node go together: when one of a gang ends, the work of all is lost. Pure, but for `with_groups`.

A Pod belongs to a gang where a label that means all or nothing says so, or where its PodGroup (scheduling.k8s.io) has
`disruptionMode: {all: {}}`. A batch Job alone is none: a thousand Pods that do not know each other may be one Job, and
no field of a Pod tells those from Pods that need each other.
"""

from collections import namedtuple
from collections.abc import Iterable
from urllib.parse import quote

from nodelib.k8s.api import Api

OWN = "remediator.dev/gang"  # any name; "false": the other labels do not count
# The controllers that set these start all their Pods anew when one is lost, or place all of them or none.
LABELS = (
    (OWN, "gang"),
    ("jobset.sigs.k8s.io/jobset-name", "JobSet"),  # Kubeflow Trainer, too
    ("leaderworkerset.sigs.k8s.io/group-key", "LeaderWorkerSet"),
    ("training.kubeflow.org/job-name", "training job"),  # the training operator and the MPI operator
    ("volcano.sh/job-name", "Volcano job"),
    ("ray.io/cluster", "RayCluster"),
    ("scheduling.x-k8s.io/pod-group", "PodGroup"),  # coscheduling of scheduler-plugins
    ("kueue.x-k8s.io/pod-group-name", "Kueue group"),
)
VOLCANO = "scheduling.k8s.io/group-name"  # annotation
VOLCANO_OWN = "podgroup-"  # of a PodGroup that Volcano makes by itself for any owner: it asks for one Pod only
PODGROUPS = "/apis/scheduling.k8s.io/v1beta1"


class Membership(namedtuple("Membership", "gang group selector", defaults=[""])):
    """The gang that the metadata of a Pod names, "" for none; and the PodGroup of Kubernetes that its spec names.

    `selector`: the label by which the API server finds all of the gang, "" where no label says it.
    """

    __slots__ = ()


ALONE = Membership("", "")


def membership_of(item: dict) -> Membership:
    """Return what a Pod object says of its gang."""
    meta = item["metadata"]
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    group = ((item.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName") or ""
    if labels.get(OWN) == "false":
        return ALONE
    named = [(kind, labels[label], f"{label}={labels[label]}") for label, kind in LABELS if labels.get(label)]
    volcano = notes.get(VOLCANO) or ""
    if volcano and not volcano.startswith(VOLCANO_OWN):
        named.append(("Volcano group", volcano, ""))
    gang = f"{named[0][0]} {meta['namespace']}/{named[0][1]}" if named else ""
    return Membership(gang, group, named[0][2] if named else "")


def with_groups(api: Api, pods: list, known: dict[tuple[str, str], bool]) -> list:
    """Return the Pods, those of a PodGroup that is disrupted as a whole as a gang. `known` keeps what was read.

    Raises Unreachable.
    """
    return [pod._replace(member=_resolved(api, pod.namespace, pod.member, known)) for pod in pods]


def _resolved(api: Api, namespace: str, member: Membership, known: dict[tuple[str, str], bool]) -> Membership:
    if member.gang or not member.group:
        return member
    key = (namespace, member.group)
    if key not in known:
        known[key] = _goes_as_one(api, *key)
    return Membership(f"PodGroup {namespace}/{member.group}" if known[key] else "", member.group)


def _goes_as_one(api: Api, namespace: str, name: str) -> bool:
    """Tell whether a PodGroup is disrupted as a whole; one that we may not read counts as such, with no harm done."""
    reply = api.get(f"{PODGROUPS}/namespaces/{quote(namespace)}/podgroups/{quote(name)}")
    if reply.status != 200:
        return reply.status != 404  # it is gone, or this server has no such kind
    return "all" in ((reply.body.get("spec") or {}).get("disruptionMode") or {})


def is_same(known: Membership, other: Membership) -> bool:
    """Tell whether a Pod as it was listed is of this gang, of which more is known: its PodGroup was read."""
    return other.gang == known.gang or (not other.gang and other.group == known.group != "")


def units(pods: Iterable) -> list[list]:
    """Return the Pods in the groups in which they go, each in the place of its first one."""
    groups: dict[str, list] = {}
    for pod in pods:
        groups.setdefault(pod.member.gang or pod.uid, []).append(pod)
    return list(groups.values())
