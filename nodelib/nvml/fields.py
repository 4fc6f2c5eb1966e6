"""NVML's fields: numbers by an id of their own, and what a refusal means. Used in the child that asks NVML."""

from collections.abc import Mapping
from typing import Any

# NVML codes by which a GPU or its driver says that it has no such thing: an id that it does not know, not supported, no
# such function, ECC of a virtual GPU, a structure that is newer than the driver, a function that is no more.
NOT_THERE = frozenset({2, 3, 13, 22, 25, 26})
MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # of the value, by its type


def ask_fields(nvml: Any, gpu: Any, fields: Mapping[str, int | tuple[int, int]]) -> dict[str, int]:
    """Return the fields, by name, that the GPU has. Each is an id, or an id and its scope (a link of NVLink).

    Raises NVMLError where one is refused for another cause than that it does not exist.
    """
    values_by_name = {}
    for name, field in zip(fields, nvml.nvmlDeviceGetFieldValues(gpu, [*fields.values()]), strict=True):
        if not field.nvmlReturn:
            values_by_name[name] = int(getattr(field.value, MEMBERS[field.valueType]))
        elif field.nvmlReturn not in NOT_THERE:
            raise nvml.NVMLError(field.nvmlReturn)
    return values_by_name
