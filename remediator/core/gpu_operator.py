"""Operands of the GPU operator on one node: paused while a GPU is reset, and resumed. Pure.

The operator runs an operand where the node's label of it is "true". Its own programs pause operands in the same way
before they change a driver or MIG devices: each by a word of its own, and behind the word of another that came before.

The driver and the container toolkit are not among them: what resets a GPU may live in the driver's own container.
"""

from collections.abc import Mapping

PAUSED = "paused-for-remediation"
OPERANDS = tuple(
    f"nvidia.com/gpu.deploy.{operand}"
    for operand in (
        "client",  # of others, who ask for this label
        "dcgm",
        "dcgm-exporter",
        "device-plugin",
        "dra-driver",
        "gpu-feature-discovery",
        "mig-manager",
        "nvsm",
        "operator-validator",
    )
)

Labels = Mapping[str, str]


def paused(labels: Labels) -> Labels:
    """The labels that pause what runs; one that is off, or that another has paused, is not among them."""
    return {label: PAUSED for label in OPERANDS if labels.get(label) == "true"}


def resumed(labels: Labels) -> Labels:
    """The labels that take our word back: what another has paused besides waits for that other.

    >>> resumed({"nvidia.com/gpu.deploy.dcgm": "paused-for-remediation"})
    {'nvidia.com/gpu.deploy.dcgm': 'true'}
    >>> resumed({"nvidia.com/gpu.deploy.dcgm": "paused-for-remediation_paused-for-driver-upgrade"})
    {'nvidia.com/gpu.deploy.dcgm': 'paused-for-driver-upgrade'}
    """
    words = {label: labels.get(label, "").partition("_") for label in OPERANDS}
    return {label: theirs or "true" for label, (ours, _, theirs) in words.items() if ours == PAUSED}
