"""What a watchdog would refuse is refused by lint."""

from remediator.kube.manifests import lint
from tests.remediator.kube.manifests.examples import manifest


def wrong(*documents):
    located = [("x.yaml:1", document) for document in documents]
    return [(finding.field, finding.message) for finding in lint.lint(located, frozenset({"reboot"}))]


def template(name, **spec):
    return manifest("NodeOperationTemplate", name, **{"drain": {"strategy": "None"}, "runOn": "Watchdog"} | spec)


def policy(operation, **parameters):
    return manifest("RemediationPolicy", "p", ladder=[{"operation": operation, "parameters": parameters}])


def test_a_template_for_a_watchdog_whose_name_is_none_of_its_3_operations_is_refused():
    assert wrong(template("clear-disk")) == [
        (
            "metadata.name",
            "no watchdog does 'clear-disk', it would refuse the order: name it one of restart-kubelet, "
            "restart-runtime, reboot-by-watchdog, or choose another runOn",
        )
    ]
    assert wrong(template("clear-disk", runOn="Target"), template("restart-kubelet")) == []


def test_a_parameter_that_the_watchdog_does_not_take_is_refused_with_those_that_it_takes():
    known = template("restart-kubelet")
    assert wrong(known, policy("restart-kubelet", settleSeconds="60")) == []
    assert wrong(known, policy("restart-kubelet", service="sshd")) == [
        (
            "spec.ladder[0].parameters.service",
            "a watchdog refuses it: restart-kubelet takes healthzPort, restartSeconds, settleSeconds there; "
            "take it out",
        )
    ]
    on_node = template("restart-kubelet", runOn="Target")
    assert wrong(on_node, policy("restart-kubelet", service="sshd")) == [], "its program takes it"
