"""Which versions of Kubernetes the controller works with, and what an API server says of its own."""

import re

OLDEST = (
    1,
    30,
)  # ValidatingAdmissionPolicy v1, and the node's name in tokens of service accounts: what holds our rights
_NUMBER = re.compile(r"^v?(\d{1,3})\.(\d{1,3})(?:\.|\+|-|$)")


def too_old(version: str) -> str:
    """Return why an API server of this version will not do, "" where it will, or where its version cannot be read.

    >>> too_old("v1.29.4")
    'the API server is Kubernetes v1.29.4, and 1.30 or newer is needed: upgrade the control plane first'
    >>> too_old("v1.34.1+rke2r1"), too_old("v1.30.5-gke.1443001"), too_old("main")
    ('', '', '')
    """
    number = _NUMBER.match(version)
    if number is None or (int(number[1]), int(number[2])) >= OLDEST:
        return ""
    oldest = ".".join(map(str, OLDEST))
    return (
        f"the API server is Kubernetes {version[:64]}, and {oldest} or newer is needed: upgrade the control plane first"
    )
