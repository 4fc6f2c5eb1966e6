"""Which versions of KubeSchedulerConfiguration each Kubernetes reads."""

from typing import NamedTuple

from remediator.core.kubernetes_version import Kubernetes, version_of

GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"


class Read(NamedTuple):
    """The first and the last Kubernetes that reads a version; None for no end."""

    first: Kubernetes
    last: Kubernetes | None

    def by(self, kubernetes: Kubernetes) -> bool:
        """Whether this Kubernetes reads it."""
        return self.first <= kubernetes and (self.last is None or kubernetes <= self.last)

    def __str__(self) -> str:
        return f"Kubernetes {self.first} to {self.last}" if self.last else f"Kubernetes {self.first} and later"


READ = {  # the best first; before v1beta2 the answer of an extender to preemption was another, and packing a plugin
    "v1": Read(Kubernetes(1, 25), None),
    "v1beta3": Read(Kubernetes(1, 23), Kubernetes(1, 28)),
    "v1beta2": Read(Kubernetes(1, 22), Kubernetes(1, 27)),
}


def kubernetes(text: str) -> Kubernetes:
    """Read a version such as 1.31 or v1.31.2. Raises ValueError with the form that is taken."""
    version = version_of(text)
    if version is None:
        raise ValueError(f"{text!r} is no version of Kubernetes; write one such as 1.31")
    return version


def api_version(of: Kubernetes) -> str:
    """The group and version to write for a Kubernetes. Raises ValueError for one that is too old.

    >>> [api_version(kubernetes(text)).partition("/")[2] for text in ("1.22", "1.24", "1.25", "v1.37.1")]
    ['v1beta2', 'v1beta3', 'v1', 'v1']
    """
    version = next((version for version, read in READ.items() if read.by(of)), None)
    if version is None:
        raise ValueError(f"{of} is older than {READ['v1beta2'].first}, the oldest Kubernetes for which one is written")
    return f"{GROUP}/{version}"
