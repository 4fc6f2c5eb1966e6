"""The templates that ladders name: how an operation is done, and how Pods leave the node before it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from remediator.core.node import Taint


class Strategy(StrEnum):
    """How pods leave a node."""

    EVICT = "Evict"
    DELETE = "Delete"
    FORCE_DELETE = "ForceDelete"
    EVICT_THEN_DELETE = "EvictThenDelete"
    WAIT_FOR_COMPLETION = "WaitForCompletion"
    NONE = "None"
    EXTERNAL = "External"


@dataclass(frozen=True, slots=True)
class DrainRule:
    """Another strategy for the Pods of these namespaces and kinds of controllers with these labels; empty: any."""

    strategy: Strategy
    namespaces: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[str, ...] = ()

    def applies(self, namespace: str, labels: Mapping[str, str], owner: str) -> bool:
        """Whether it chooses a Pod of this namespace, with these labels, whose controller is of kind `owner`."""
        return (
            (not self.namespaces or namespace in self.namespaces)
            and (not self.owners or owner in self.owners)
            and all(labels.get(key) == value for key, value in self.labels.items())
        )


@dataclass(frozen=True, slots=True)
class Toleration:
    """Which taints a Pod bears: "" is any key, and any effect; `value` None is any value."""

    key: str = ""
    value: str | None = None
    effect: str = ""

    def bears(self, taint: Taint) -> bool:
        """Whether this taint keeps the Pod off no node."""
        keyed = self.key in ("", taint.key) and self.effect in ("", taint.effect)
        return keyed and self.value in (None, taint.value)


class RunOn(StrEnum):
    """Where the Pod of an operation runs. That of WATCHDOG is started by no kubelet: it is the watchdog's order."""

    TARGET = "Target"
    ELSEWHERE = "Elsewhere"
    WATCHDOG = "Watchdog"


GRACE = timedelta(seconds=30)  # of a Pod that has none written


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Idle nodes with the same value of `label` to which the program measures: so many at once, of all operations."""

    label: str
    at_once: int


@dataclass(frozen=True, slots=True)
class Template:
    """How one operation is done. `pod` is an ordinary PodTemplateSpec, as written."""

    name: str
    strategy: Strategy
    drain_timeout: timedelta
    run_on: RunOn
    timeout: timedelta
    boot_id_changed: bool
    node_ready: bool
    pod: Mapping[str, Any]
    version: str = ""
    after: tuple[str, ...] = ()  # templates that complete it, in order
    covers: tuple[str, ...] = ()  # templates that need not be tried once it was done
    skip_wait_for_delete: timedelta | None = None  # a Pod whose end is overdue by more is not waited for
    tolerations: tuple[Toleration, ...] = ()  # of its Pod
    grace: timedelta = GRACE  # how long its Pod may take to end once it is told to
    drain_condition: str = ""  # of strategy External: the node Condition by which another system says that it is done
    drain_rules: tuple[DrainRule, ...] = ()  # the first that chooses a Pod outranks `strategy`
    evict_for: timedelta | None = None  # how long EvictThenDelete evicts; None: half of the drain's time
    delete_bare_pods: bool = False
    delete_empty_dir_data: bool = False
    pauses_gpu_operands: bool = False  # the operands of the GPU operator that use GPUs, while its Pod works
    override_annotations_after: timedelta | None = None  # when a drain goes against those that keep Pods; None: never
    neighbours: Neighbours | None = None  # None: it measures to none

    @property
    def drains(self) -> bool:
        """Whether any Pod must leave the node first."""
        return any(strategy is not Strategy.NONE for strategy in (self.strategy, *self._of_rules))

    @property
    def has_drain_pod(self) -> bool:
        """Whether a Pod of ours drains the node first."""
        return self.drains and self.strategy is not Strategy.EXTERNAL

    @property
    def _of_rules(self) -> tuple[Strategy, ...]:
        return tuple(rule.strategy for rule in self.drain_rules)

    def strategy_of(self, namespace: str, labels: Mapping[str, str], owner: str) -> Strategy:
        """How one Pod leaves the node."""
        chosen = (rule.strategy for rule in self.drain_rules if rule.applies(namespace, labels, owner))
        return next(chosen, self.strategy)

    @property
    def needs_boot(self) -> bool:
        """Whether it is for one boot of its node: the program refuses in another one, or a new one is its success."""
        return self.run_on is not RunOn.ELSEWHERE or self.boot_id_changed

    def cannot_begin(self, boot_id: str) -> bool:
        """Whether the boot in which the node is would have to be known."""
        return self.needs_boot and not boot_id

    @property
    def has_criteria(self) -> bool:
        """Whether success shows on the node, and so outranks the exit code."""
        return self.boot_id_changed or self.node_ready
