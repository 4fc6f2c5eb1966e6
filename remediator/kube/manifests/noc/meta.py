"""What of the metadata of an object of theirs is kept."""

from remediator.kube.api import ObjectMeta

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def kept(metadata: ObjectMeta, name: str = "") -> ObjectMeta:
    """Name, labels and annotations; kubectl's own copy of the manifest is not ours."""
    annotations = {key: value for key, value in metadata.annotations.items() if key != _APPLIED}
    return ObjectMeta(name=name or metadata.name, labels=metadata.labels, annotations=annotations)
