"""Which PersistentVolumeClaims Pods and workloads name: only the fields that say so."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from remediator.kube.api.common import Base, ObjectMeta
from remediator.kube.wire.client import Kind


class ClaimVolume(Base, frozen=True, kw_only=True):
    """A volume that is a claim."""

    claim_name: str = ""


class Volume(Base, frozen=True, kw_only=True):
    """A volume of a Pod."""

    persistent_volume_claim: ClaimVolume | None = None


class VolumesSpec(Base, frozen=True, kw_only=True):
    """The spec of a Pod."""

    volumes: tuple[Volume, ...] | None = None


class VolumesPod(Base, frozen=True, kw_only=True):
    """A Pod, or the template of one."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumesSpec = VolumesSpec()


class ClaimTemplate(Base, frozen=True, kw_only=True):
    """A claim that a StatefulSet makes for each of its Pods."""

    metadata: ObjectMeta = ObjectMeta()


class WorkloadSpec(Base, frozen=True, kw_only=True):
    """The spec of what makes Pods."""

    template: VolumesPod = VolumesPod()
    volume_claim_templates: tuple[ClaimTemplate, ...] | None = None


class Workload(Base, frozen=True, kw_only=True):
    """A Deployment, a StatefulSet or a Job."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


class ScheduleSpec(Base, frozen=True, kw_only=True):
    """The spec of a CronJob."""

    job_template: Workload = Workload()


class CronJob(Base, frozen=True, kw_only=True):
    """A CronJob."""

    spec: ScheduleSpec = ScheduleSpec()


class Claims(msgspec.Struct, frozen=True):
    """What names claims in one namespace: those mounted by Pods, those of templates, and patterns of StatefulSets."""

    mounted: frozenset[str]
    named: frozenset[str]
    made: tuple[re.Pattern[str], ...]

    def context(self, claim: str) -> dict[str, bool]:
        """What rules may ask of one claim as `_context`."""
        mounted = claim in self.mounted
        referenced = mounted or claim in self.named or any(pattern.fullmatch(claim) for pattern in self.made)
        return {"pvc_is_not_mounted": not mounted, "pvc_is_not_referenced": not referenced}


VOLUMES_POD = Kind("", "v1", "pods", "Pod", VolumesPod, namespaced=True)
SCHEDULES = Kind("batch", "v1", "cronjobs", "CronJob", CronJob, namespaced=True)
WORKLOADS: tuple[Kind[Workload], ...] = (
    Kind("apps", "v1", "deployments", "Deployment", Workload, namespaced=True),
    Kind("apps", "v1", "statefulsets", "StatefulSet", Workload, namespaced=True),
    Kind("batch", "v1", "jobs", "Job", Workload, namespaced=True),
)


def claims(pods: Iterable[VolumesPod], schedules: Iterable[CronJob], workloads: Iterable[Workload]) -> Claims:
    """What names claims, of all objects in one namespace."""
    works = [*workloads, *(schedule.spec.job_template for schedule in schedules)]
    named = (name for work in works for name in _of_pod(work.spec.template))
    made = (pattern for work in works for pattern in _of_set(work))
    return Claims(frozenset(name for pod in pods for name in _of_pod(pod)), frozenset(named), tuple(made))


def _of_pod(pod: VolumesPod) -> Iterator[str]:
    yield from (
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes or ()
        if volume.persistent_volume_claim is not None
    )


def _of_set(work: Workload) -> Iterator[re.Pattern[str]]:
    for template in work.spec.volume_claim_templates or ():
        yield re.compile(rf"{re.escape(template.metadata.name)}-{re.escape(work.metadata.name)}-[0-9]+")
