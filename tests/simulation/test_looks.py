"""What steps wait for is read anew as soon as an object has changed, and only then."""

from collections.abc import Callable, Iterator

import pytest

from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Store
from remediator_sim.invariants.contract import CASES
from remediator_sim.simulation.looks import Looks, open_cases

KEY = ("", "a")


def case(node: str, phase: str = "Draining") -> Obj:
    """A case as it is stored."""
    head = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeRemediation", "metadata": {"name": "a"}}
    return head | {"spec": {"nodeName": node}, "status": {"phase": phase}}


def write(store: Store) -> None:
    """The case moves to another node."""
    store.write(CASES, KEY, case("gpu-2"))


def delete(store: Store) -> None:
    """The case goes."""
    store.delete(CASES, KEY, case("gpu-1"))


def restore(store: Store) -> None:
    """The store goes back to where the case was that of another node, at the version that it has now."""
    before = Store()
    before.write(CASES, KEY, case("gpu-3"))
    store.restore(before.snapshot(), store.rv)


def replace(store: Store) -> None:
    """The kind goes, and comes back with a case of another node."""
    store.drop(CASES)
    store.write(CASES, KEY, case("gpu-4"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda store: None, {"gpu-1": ["a"]}),
        (lambda store: store.write("nodes", KEY, case("gpu-9")), {"gpu-1": ["a"]}),
        (write, {"gpu-2": ["a"]}),
        (delete, {}),
        (restore, {"gpu-3": ["a"]}),
        (replace, {"gpu-4": ["a"]}),
        (Store.clear, {}),
    ],
    ids=["nothing", "another kind", "written", "deleted", "restored", "replaced", "cleared"],
)
def test_a_kind_is_read_anew_once_an_object_of_it_has_changed_and_not_before(
    change: Callable[[Store], object], expected: dict[str, list[str]]
) -> None:
    store, read = Store(), list[str]()
    looks = Looks(store)

    def cases(objects: Iterator[Obj]) -> dict[str, list[str]]:
        read.append("once")
        return open_cases(objects)

    store.write(CASES, KEY, case("gpu-1"))
    assert looks.of(CASES, cases) == {"gpu-1": ["a"]}
    change(store)
    assert looks.of(CASES, cases) == looks.of(CASES, cases) == expected
    assert len(read) == (1 if expected == {"gpu-1": ["a"]} else 2)
