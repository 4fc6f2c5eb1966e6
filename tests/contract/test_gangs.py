"""What the controller counts as one job is what a drain lets go together: the two share names, and no code."""

import pytest

from nodelib.k8s import gangs, handshake
from remediator.core import job
from remediator.kube.api import working_pods

LABELS = {"jobset.sigs.k8s.io/jobset-name": "whole", "kueue.x-k8s.io/pod-group-name": "part"}


def test_both_know_the_same_labels_in_the_same_order() -> None:
    assert job.GANGS == gangs.LABELS
    assert (job.OWN, job.VOLCANO, job.VOLCANO_OWN) == (gangs.OWN, gangs.VOLCANO, gangs.VOLCANO_OWN)
    assert (working_pods.CHECKPOINT, working_pods.SAVED) == (handshake.WANTED, handshake.DONE)


@pytest.mark.parametrize("labels", [LABELS, {gangs.OWN: "mine", **LABELS}, {"ray.io/cluster": "serve"}])
@pytest.mark.parametrize("annotations", [{}, {gangs.VOLCANO: "group"}, {gangs.VOLCANO: "podgroup-1"}])
def test_a_gang_has_one_name_for_both(labels: dict[str, str], annotations: dict[str, str]) -> None:
    meta = {"namespace": "team", "name": "a", "labels": labels, "annotations": annotations}
    assert str(job.job_of("team", "a", labels, annotations)) == gangs.membership_of({"metadata": meta}).gang
