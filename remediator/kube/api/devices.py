"""What drivers of DRA publish of the devices of a node: ResourceSlices; and DeviceTaintRules, as far as we end them."""

from remediator.core.devices import Device, DeviceTaint, Slice
from remediator.kube.api.builtin import Head
from remediator.kube.api.common import Base, ObjectMeta
from remediator.kube.wire.client import Kind


class DeviceAttribute(Base, frozen=True, kw_only=True):
    """What a driver says of one device; only text interests us."""

    string: str | None = None


class DeviceTaint(Base, frozen=True, kw_only=True):
    """Why a device had better not be used, or must not be."""

    key: str
    effect: str = ""
    value: str = ""


class WireDevice(Base, frozen=True, kw_only=True):
    """One device."""

    name: str
    attributes: dict[str, DeviceAttribute] | None = None
    taints: tuple[DeviceTaint, ...] | None = None


class Pool(Base, frozen=True, kw_only=True):
    """Of which pool a slice is a part, and how many parts this generation of the pool has."""

    name: str
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(Base, frozen=True, kw_only=True):
    """The devices of one slice; `node_name` is absent where they belong to no one node."""

    driver: str
    pool: Pool
    node_name: str = ""
    devices: tuple[WireDevice, ...] | None = None


class ResourceSlice(Base, frozen=True, kw_only=True):
    """A ResourceSlice."""

    metadata: ObjectMeta
    spec: SliceSpec


RESOURCE_SLICE = Kind("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", ResourceSlice)
TAINT_RULE = Kind("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", Head)


def device_slice(wire: ResourceSlice) -> Slice:
    """A slice, of its devices only those with a taint: thousands of slices are kept."""
    spec = wire.spec
    return Slice(
        name=wire.metadata.name,
        node=spec.node_name,
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        slices=spec.pool.resource_slice_count,
        tainted=tuple(_device(device) for device in spec.devices or () if device.taints),
        version=wire.metadata.resource_version,
    )


def _device(wire: WireDevice) -> Device:
    """The UUID is an attribute of the driver's own; its name may begin with a domain."""
    texts = {key.rpartition("/")[2]: value.string for key, value in (wire.attributes or {}).items()}
    taints = tuple(DeviceTaint(taint.key, taint.value, taint.effect) for taint in wire.taints or ())
    return Device(wire.name, texts.get("uuid") or "", taints)
