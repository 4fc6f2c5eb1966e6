"""Which Pod a process belongs to, from the text of its cgroup file. Pure."""

import re

UID = r"[0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12}"
ANYWHERE = re.compile(rf"(?:^|[/-])pod((?i:{UID}))(?=\.slice|[/:]|$| \(deleted\))")
CONTAINER = re.compile(r"(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])")
SEGMENT = re.compile(rf"(?:[a-z-]*kubepods[a-z-]*-)?pod({UID})(?:\.slice)?", re.IGNORECASE)
# What may stand before a Pod in a path: this kubelet's own groups, or what a cgroup namespace cut off. Behind anything
# else (docker-….scope, lxc.payload) there is a cluster inside a container, whose Pods this node's kubelet never knew.
ABOVE = re.compile(r"\.\.|kubelet(?:\.slice)?|(?:[a-z]+-)*kubepods(?:-[a-z]+)?(?:\.slice)?|burstable|besteffort")


def bare(uid: str) -> str:
    """Return a Pod's uid in the form in which uids are compared: kubelets write them with -, with _ or without."""
    return uid.replace("-", "").replace("_", "").lower()


def dashed(uid: str) -> str:
    """Return 32 hex digits as the API server writes a uid."""
    return "-".join((uid[:8], uid[8:12], uid[12:16], uid[16:20], uid[20:]))


def pod_of(cgroup: str) -> str:
    """Return the one Pod of this node that a cgroup file names, the outermost; "" for none, or for more than one.

    For what ends processes: a Pod of a cluster inside a container is none of this node.

    >>> pod_of("0::/kubepods/burstable/pod12345678-1234-1234-1234-123456789abc/4f")
    '12345678123412341234123456789abc'
    >>> pod_of("0::/docker/4f/kubepods/pod12345678-1234-1234-1234-123456789abc/5e")
    ''
    """
    pods = {_pod_of(line.split(":", 2)[-1]) for line in cgroup.splitlines()} - {""}
    return pods.pop() if len(pods) == 1 else ""


def _pod_of(path: str) -> str:
    for segment in path.removesuffix(" (deleted)").strip("/").split("/"):
        match = SEGMENT.fullmatch(segment)
        if match:
            return bare(match[1])
        if not ABOVE.fullmatch(segment):
            return ""
    return ""


def any_pod(cgroup: str) -> str:
    """Return the first Pod that a cgroup file names, at whatever place in a path; "" for none.

    For what only looks: a Pod of a cluster inside a container counts, too.
    """
    return next((bare(match[1]) for line in cgroup.split("\n") if (match := ANYWHERE.search(line))), "")


def parse_cgroup(cgroup: str) -> tuple[str, str]:
    """Return the Pod's uid (32 hex digits) and the container's id, "" each where there is none. Raises ValueError.

    The outermost Pod counts: the API server of this node knows no Pod inside of it. The leading parts of a path may be
    cut (a cgroup namespace of our own), so nothing is anchored to kubepods.
    """
    lines = [line for line in cgroup.split("\n") if line]
    if not lines or not all(re.fullmatch(r"[0-9]+:[^:]*:/.*", line) for line in lines):
        raise ValueError("cgroup")
    line = next((line for line in lines if ANYWHERE.search(line.split(":", 2)[2])), "")
    containers = [] if "conmon" in line else CONTAINER.findall(line)  # CRI-O's monitor is not the container
    return any_pod(line), containers[-1] if containers else ""
