"""Pods of nobody's, in the way of an operation."""

from typing import Any

from tests.kubelet.node import PAUSE


def sleeper(name: str, node: str) -> dict[str, Any]:
    """A Pod on this node that does nothing for ever, and is gone as soon as it is asked to go."""
    sleep = {"name": "sleep", "image": PAUSE, "imagePullPolicy": "Never"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"remediator.dev/evict": "true"}},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [sleep]},
    }
