"""The Job of an operation of theirs, as the Pod of a template of ours."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from remediator.core.template import RunOn
from remediator.kube.manifests.noc.pod_wire import Container, Job, Source, Variable
from remediator.kube.manifests.noc.remark import Refused, Remark
from remediator.kube.manifests.noc.wire import NODE_NAME

Object = dict[str, Any]
JOB = "jobTemplate.spec"
POD = f"{JOB}.template.spec"
_FIELD = f"metadata.annotations['{NODE_NAME}']"
_HOSTNAME = "kubernetes.io/hostname"
_OURS = "NODE_NAME"  # the variable by which Pods of operations learn their node here
_CARRIED = {"template", "activeDeadlineSeconds", "parallelism", "completions"}
_UNUSED = {"restartPolicy", "activeDeadlineSeconds"}  # Never, and the timeout of the template
_PLACES = {"nodeName", "nodeSelector"}


def read(written: Object) -> Job:
    """What is looked at in a Job. Raises Refused for what no API server would take, and no Pod of ours does."""
    try:
        job = msgspec.convert(written, Job)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        raise Refused(JOB + where.rstrip("`"), f"{what}; correct it") from None
    for field, count in (("parallelism", job.parallelism), ("completions", job.completions)):
        if count != 1:
            raise Refused(f"{JOB}.{field}", "an operation is one Pod here; start the others from it")
    return job


def run_on(job: Job, node: str) -> RunOn:
    """On the node itself only where the manifest puts it there: their controller puts it nowhere."""
    pod = job.template.spec
    return RunOn.TARGET if node and node in (pod.node_name, pod.node_selector.get(_HOSTNAME)) else RunOn.ELSEWHERE


def pod_template(written: Object, job: Job, node: str) -> Object:
    """Its Pod, which learns the name of its node as Pods here do. Raises Refused for what no Pod of ours does."""
    if job.template.spec.node_name not in ("", node):
        raise Refused(f"{POD}.nodeName", "binds the Pod also where that node is the one to be repaired; remove it")
    left_out = _UNUSED | (_PLACES if run_on(job, node) is RunOn.TARGET else set())
    spec = {key: value for key, value in written["template"]["spec"].items() if key not in left_out}
    for key, containers in (
        ("initContainers", job.template.spec.init_containers),
        ("containers", job.template.spec.containers),
    ):
        if containers:
            spec[key] = [_container(*pair) for pair in zip(spec[key], containers, strict=True)]
    if NODE_NAME in json.dumps(spec):
        what = f"reads the annotation {NODE_NAME}, which Pods do not have here"
        raise Refused(POD, f"{what}; write $(NODE_NAME) in command, args or env")
    metadata = {key: value for key, value in (written["template"].get("metadata") or {}).items() if key in _META}
    return ({"metadata": metadata} if metadata else {}) | {"spec": spec}


_META = ("labels", "annotations")


def _container(written: Object, container: Container) -> Object:
    """With the variable of ours in the place of their annotation."""
    env = [
        {"name": variable.name, "value": f"$({_OURS})"} if _names_node(variable) else entry
        for entry, variable in zip(written.get("env") or (), container.env or (), strict=True)
        if variable.name != _OURS or not _names_node(variable)
    ]
    rest = {key: value for key, value in written.items() if key != "env"}
    return rest | ({"env": env} if env else {})


def _names_node(variable: Variable) -> bool:
    source = variable.value_from
    return source is not None and source.field_ref is not None and source.field_ref.field_path == _FIELD


def timeout(job: Job) -> str | None:
    """The shorter one of its deadlines, or None where it has none."""
    given = [seconds for seconds in (job.active_deadline_seconds, job.template.spec.active_deadline_seconds) if seconds]
    return f"{min(given)}s" if given else None


def remarks(written: Object, job: Job, on: RunOn) -> Iterator[Remark]:
    """What of it is different here."""
    if timeout(job) is None:
        message = "has no activeDeadlineSeconds: here the Pod is stopped after 15m, and counts as failed; set timeout"
        yield Remark(JOB, message)
    if on is RunOn.ELSEWHERE:
        message = (
            "is put on no node by theirs, so it runs on another, healthy node; set runOn: Target for the node itself"
        )
        yield Remark(POD, message)
    for field in sorted(set(written) - _CARRIED):
        yield Remark(f"{JOB}.{field}", _OTHER.get(field, "is left out: there is no Job here, but one Pod"))
    if used := sorted(set(_in_namespace(job))):
        where = "must be in the namespace where Pods of operations run; make them there"
        yield Remark(POD, f"{', '.join(used)}: {where}")


_OTHER = {
    "backoffLimit": "is left out: each attempt is one Pod; write attempts in the ladder of the policy for more",
    "suspend": "is left out: mode: Paused of a policy, or the annotation remediator.dev/paused, holds operations",
    "ttlSecondsAfterFinished": "is left out: Pods of operations are deleted once their outcome is recorded",
}


def _in_namespace(job: Job) -> Iterator[str]:
    """What of its own namespace the Pod names."""
    pod = job.template.spec
    if pod.service_account_name:
        yield f"ServiceAccount {pod.service_account_name}"
    yield from (f"Secret {secret.name}" for secret in pod.image_pull_secrets or ())
    for volume in pod.volumes or ():
        if volume.config_map:
            yield f"ConfigMap {volume.config_map.name}"
        if volume.secret:
            yield f"Secret {volume.secret.secret_name}"
        if volume.persistent_volume_claim:
            yield f"PersistentVolumeClaim {volume.persistent_volume_claim.claim_name}"
    for container in (*(pod.init_containers or ()), *(pod.containers or ())):
        for source in container.env_from or ():
            yield from _source(source)
        for variable in container.env or ():
            yield from _source(variable.value_from or Source())


def _source(source: Source) -> Iterator[str]:
    yield from (f"ConfigMap {ref.name}" for ref in (source.config_map_ref, source.config_map_key_ref) if ref)
    yield from (f"Secret {ref.name}" for ref in (source.secret_ref, source.secret_key_ref) if ref)
