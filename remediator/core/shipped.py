"""Which shipped policies, budgets and templates are made or updated, and which belong to a user by now. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

Spec = Mapping[str, Any]
LONGEST = 120  # characters of a value that are shown


class Shipped(NamedTuple):
    """One object as this version ships it; its spec has every default written out."""

    kind: str
    name: str
    spec: Spec

    @property
    def key(self) -> str:
        """How a user names it."""
        return f"{self.kind}/{self.name}"


class Live(NamedTuple):
    """The object in the cluster; a spec is None where it cannot be read, or where nothing was noted."""

    spec: Spec | None
    noted: Spec | None  # as it was shipped when `remediator defaults` last wrote it


class Step(StrEnum):
    """What becomes of one object."""

    CREATE = "created"
    UPDATE = "updated"
    NOTE = "taken over"
    NOTHING = "as shipped"
    EDITED = "left alone"
    DELETED = "not created again"
    REFUSED = "refused by the API server"


@dataclass(frozen=True, slots=True)
class ShippedVerdict:
    """What is done about one object; `differences`: what an update would have changed, or the words of a refusal."""

    shipped: Shipped
    step: Step
    differences: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What a person reads."""
        return (
            f"{self.shipped.key}: {self.step.value}{WHY.get(self.step, '')}",
            *(f"  {each}" for each in self.differences),
        )


WHY = {
    Step.NOTE: ", since it is as shipped",
    Step.EDITED: ", since it was edited here; as shipped it would differ:",
    Step.DELETED: ", since it was deleted here; "
    "to have it again, name it in defaults.restore for one upgrade, then take it out",
}


def judge(shipped: Shipped, live: Live | None, *, made: bool, restore: bool = False) -> ShippedVerdict:
    """What is done about one object.

    Args:
        shipped: As this version ships it.
        live: What the cluster has; None for nothing.
        made: Whether it was made here before, so that who finds nothing knows that a user has deleted it.
        restore: Whether a user wants it as shipped, whatever was done to it.
    """
    if live is None:
        return ShippedVerdict(shipped, Step.DELETED if made and not restore else Step.CREATE)
    if live.spec == shipped.spec:
        return ShippedVerdict(shipped, Step.NOTHING if live.noted == shipped.spec else Step.NOTE)
    if restore or (live.spec is not None and live.spec == live.noted):
        return ShippedVerdict(shipped, Step.UPDATE)
    if live.spec is None:
        return ShippedVerdict(shipped, Step.EDITED, ("this version cannot read it",))
    return ShippedVerdict(shipped, Step.EDITED, tuple(_differences("spec", live.spec, shipped.spec)))


def patch(live: Spec, wanted: Spec) -> dict[str, Any]:
    """The merge patch that makes one spec of another: what is no longer wanted becomes null."""
    gone = {name: None for name in live if name not in wanted}
    return gone | {name: _patch(live.get(name), value) for name, value in wanted.items()}


def _patch(live: Any, wanted: Any) -> Any:
    return patch(live, wanted) if isinstance(live, Mapping) and isinstance(wanted, Mapping) else wanted


def _differences(path: str, live: Any, shipped: Any) -> Iterator[str]:
    if isinstance(live, Mapping) and isinstance(shipped, Mapping):
        for name in sorted({*live, *shipped}):
            yield from _differences(f"{path}.{name}", live.get(name), shipped.get(name))
    elif live != shipped:
        yield f"{path}: {_shown(live)} here, {_shown(shipped)} shipped"


def _shown(value: Any) -> str:
    """A value on one line, or that there is none."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
