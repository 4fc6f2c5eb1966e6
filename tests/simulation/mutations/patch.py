"""How a process is broken."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple


class Patch(NamedTuple):
    """One name of one module or class, or one key of a table of handlers, and what stands there instead."""

    owner: Any
    name: Any
    value: Any

    def apply(self) -> None:
        """Break this process."""
        assert self.name in self.owner if isinstance(self.owner, dict) else hasattr(self.owner, self.name), self.name
        if isinstance(self.owner, dict):
            self.owner[self.name] = self.value
        else:
            setattr(self.owner, self.name, self.value)


Patches = Callable[[], Sequence[Patch]]


def sets(owner: Any, name: Any, value: Any) -> Patches:
    """Something stands there instead."""
    return lambda: [Patch(owner, name, value)]


def answers(owner: Any, name: str, value: Any) -> Patches:
    """A function or property of a class gives this, whatever it is asked."""
    return sets(owner, name, property(lambda self: value) if isinstance(owner, type) else lambda *asked, **named: value)


def everywhere(before: Any, value: Any) -> list[Patch]:
    """Under whatever name a module of the product has it."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("remediator.")]
    return [Patch(module, name, value) for module in modules for name, held in vars(module).items() if held is before]


def wraps(owner: Any, name: str, change: Callable[..., Any]) -> Patches:
    """Wherever it is called, `change(before, *asked, **named)` is called instead."""
    before = getattr(owner, name)

    def changed(*asked: Any, **named: Any) -> Any:
        return change(before, *asked, **named)

    return lambda: [Patch(owner, name, changed)] if isinstance(owner, type) else everywhere(before, changed)


def handler(handlers: dict[Any, Any], step: Any, **parts: Any) -> Patches:
    """A handler of a step or move with other parts."""
    return lambda: [Patch(handlers, step, replace(handlers[step], **parts))]


async def nothing(*asked: Any, **named: Any) -> None:
    """Await nothing and give nothing."""


async def never(*asked: Any, **named: Any) -> bool:
    """Await nothing and say no."""
    return False


async def as_it_is(view: Any, *asked: Any) -> Any:
    """Look at nothing."""
    return view
