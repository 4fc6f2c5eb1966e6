"""Runs collect-diagnostics before anything changes the node. Its result, also a failure, never stops the case. Pure.

Where its bundle may be sent is a secret, since many may read Pods: it stands in a Secret of the Pod's name, which is
made once the Pod is there, for which its kubelet waits, and which goes with the Pod.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate

import msgspec

from remediator.controller import pods
from remediator.controller.case_view import CaseView
from remediator.controller.effects import Create, Plan, SaveCase
from remediator.core import names
from remediator.core.case import Case, Diagnosis, advance
from remediator.core.node import Status
from remediator.core.pod import Pod
from remediator.core.reasons import Reason
from remediator.core.template import Template
from remediator.kube.api import encode
from remediator.kube.api.builtin import POD, SECRET

URL = "BUNDLE_URL"
LARGEST = 4096  # bytes of evidence: what a kubelet keeps of a termination message
DEEPEST = 32  # levels of evidence that are kept: whoever reads the case must be able to


def diagnose(view: CaseView, now: datetime) -> Plan:
    """Create the Pod, wait for it, record its result, delete it."""
    case, template = view.case, view.diagnostics
    if template is None:
        return (SaveCase(case, failed(case, f"no template {names.DIAGNOSTICS_TEMPLATE}", now)),)
    if case.blocks:  # what stopped it is over: the time of the Pod begins now
        return (SaveCase(case, replace(advance(case, Reason.RESUMED, "nothing stops the case", now), blocks=())),)
    if _silent(view) and not view.pods:
        return (SaveCase(case, failed(case, "the kubelet does not report, so no Pod can read the node", now)),)
    pod = next((pod for pod in view.pods if pod.template == names.DIAGNOSTICS_TEMPLATE), None)
    if pod is not None and pod.ended:
        return (SaveCase(case, diagnosed(case, pod, now)), *pods.deletions((pod,)))
    if overdue(view, now):
        message = pod.message if pod else "its Pod could not be created"
        late = SaveCase(case, failed(case, f"timed out: {message}", now))
        return (*pods.deletions((pod,) if pod else ()), late)
    if pod is None:
        name = pods.diagnostics_pod_name(case)
        secret = (URL,) if view.bundle_store else ()
        return (Create(POD, pods.pod(template, name, case, None, secret=secret), gated=True),)
    return _bundle(view, template, pod, now) if pod.pending else ()


def _bundle(view: CaseView, template: Template, pod: Pod, now: datetime) -> Plan:
    """Where the Pod may send its bundle, for as long as it may run; nothing where that stays on the node."""
    if view.bundle_store is None:
        return ()
    case, lasts = view.case, template.timeout + pods.START_GRACE
    url = view.bundle_store.put_url(f"{case.node}/{case.name}.tar.gz", now, lasts)
    return (Create(SECRET, encode.secret_of(pod, URL, url)),)


def _silent(view: CaseView) -> bool:
    """Whether the case is begun on a node whose kubelet does not report: a Pod there would only wait, and be waited for
    when the case ends.
    """
    about = view.policy is not None and (view.policy.asks_unknown or view.policy.manual)
    return about and view.node is not None and view.node.ready is Status.UNKNOWN


def overdue(view: CaseView, now: datetime) -> bool:
    """Whether the Pod should have ended by now; one that runs has its grace, in which it lets the driver answer."""
    if view.diagnostics is None or view.case.blocks:
        return False
    runs = any(pod.template == names.DIAGNOSTICS_TEMPLATE and not pod.pending for pod in view.pods)
    time = view.diagnostics.timeout + pods.START_GRACE + (view.diagnostics.grace if runs else timedelta(0))
    return now >= view.absences.deadline(_begun(view.case, now), time)


def _begun(case: Case, now: datetime) -> datetime:
    """Since when the Pod could have been made: the claim, or the end of what stopped the case then."""
    resumed = [event.at for event in case.timeline if event.reason is Reason.RESUMED]
    return max([*resumed, case.started or now])


def diagnosed(case: Case, pod: Pod, now: datetime) -> Case:
    """The case with what its Pod has left."""
    size = len(pod.message.encode())
    if size > LARGEST:
        return failed(case, f"the evidence is too large: {size} of at most {LARGEST} bytes", now)
    evidence = _evidence(pod)
    if evidence is None:
        return failed(case, pod.message, now)
    after = advance(case, Reason.DIAGNOSED, "evidence is in status.evidence", now)
    return replace(after, diagnosis=Diagnosis.SUCCEEDED, evidence=evidence)


def failed(case: Case, message: str, now: datetime) -> Case:
    """The case without evidence."""
    after = advance(case, Reason.DIAGNOSIS_FAILED, message[:200] or "the program left no message", now)
    return replace(after, diagnosis=Diagnosis.FAILED)


def _evidence(pod: Pod) -> dict[str, object] | None:
    """The JSON object that the program left; None where it left none."""
    try:
        value = msgspec.json.decode(pod.message)
        return value if isinstance(value, dict) and _nesting(pod.message) <= DEEPEST else None
    except (ValueError, RecursionError):
        return None


def _nesting(text: str) -> int:
    """How deep the JSON is nested, or deeper: brackets inside of strings count."""
    return max(accumulate(1 if letter in "[{" else -1 for letter in text if letter in "[{]}"), default=0)
