"""Configuration of a custom plugin monitor: the JSON files of node-problem-detector, with its fields and defaults.

What node-problem-detector v1.36.0 refuses at its start is refused, and so are four numbers that it takes and then
crashes or hangs with. What it takes is taken, however odd: unknown fields, keys in any case, a rule of unknown type.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from remediator_sim.kubelet.container import IMAGE_PROGRAMS
from remediator_sim.npd import duration

START = f"{IMAGE_PROGRAMS}nodelib/forks/start.py"  # is told which detector, and its options
PERMANENT, TEMPORARY = "permanent", "temporary"


@dataclass(frozen=True, slots=True)
class Default:
    """One condition of the file: its type, and the reason and message that it has while all is well."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One program. `timeout`, in seconds, counts where it is shorter than the monitor's."""

    type: str
    condition: str
    reason: str
    path: str
    args: tuple[str, ...] = ()
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Monitor:
    """One file: when its rules run and what their results mean. Times in seconds, `max_output` in bytes."""

    source: str
    defaults: tuple[Default, ...]
    rules: tuple[Rule, ...]
    interval: float = 30.0
    timeout: float = 5.0
    max_output: int = 80
    concurrency: int = 3
    message_changes: bool = False
    skip_initial_status: bool = False

    @classmethod
    def read(cls, path: Path, programs: Path | None = None) -> "Monitor":
        """The monitor that a file describes. Raises ValueError that names file, field and remedy.

        `programs`, where given, is the folder that stands for the image's /opt/remediator in the paths of rules.
        """
        try:
            monitor = _monitor(_parse(path.read_bytes()), programs)
            monitor.check()
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}; it must be readable") from error
        except (ValueError, msgspec.MsgspecError) as error:
            raise ValueError(f"{path}: {error}") from error
        return monitor

    def with_(
        self, *, interval: float | None = None, timeout: float | None = None, args: Sequence[str] | None = None
    ) -> "Monitor":
        """This monitor with other seconds, or other arguments for every rule; a new timeout replaces the rules' own.

        Raises ValueError where the result makes no sense.
        """
        rules = tuple(
            replace(
                rule,
                args=rule.args if args is None else tuple(args),
                timeout=rule.timeout if timeout is None else None,
            )
            for rule in self.rules
        )
        changed = replace(
            self,
            rules=rules,
            interval=self.interval if interval is None else interval,
            timeout=self.timeout if timeout is None else timeout,
        )
        changed.check()
        return changed

    def patience(self, rule: Rule) -> float:
        """How many seconds a run of `rule` may take."""
        return self.timeout if rule.timeout is None else min(rule.timeout, self.timeout)

    def check(self) -> None:
        """Raise ValueError for what node-problem-detector does not start with, or cannot live with."""
        for field, wrong, remedy in (
            ("invoke_interval", self.interval <= 0, "be longer than 0s"),
            ("concurrency", self.concurrency < 1, "be 1 or more: with less no rule ever runs"),
            ("max_output_length", self.max_output < 0, "be 0 or more"),
        ):
            if wrong:
                raise ValueError(f"pluginConfig.{field} must {remedy}")
        types = {default.type for default in self.defaults}
        for index, rule in enumerate(self.rules):
            _check_rule(f"rules[{index}]", rule, self.timeout, types)


def _check_rule(field: str, rule: Rule, timeout: float, types: set[str]) -> None:
    if rule.timeout is not None and rule.timeout > timeout:
        raise ValueError(
            f"{field}.timeout ({rule.timeout:g}s) is longer than pluginConfig.timeout ({timeout:g}s); raise the latter"
        )
    if not _exists(rule.path):
        raise ValueError(f"{field}.path {rule.path!r} does not exist; give the absolute path of the program")
    if rule.type == PERMANENT and rule.condition not in types:
        raise ValueError(f"{field}.condition {rule.condition!r} is not in conditions; add it there with its defaults")


def _exists(path: str) -> bool:
    """Only what is surely not there counts as missing: a path that may not be looked at is found out by running it."""
    try:
        Path(path).stat()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return bool(path)


class _Default(msgspec.Struct):
    type: str | None = None
    status: str | None = None
    transition: datetime | None = None
    reason: str | None = None
    message: str | None = None


class _Rule(msgspec.Struct):
    type: str | None = None
    condition: str | None = None
    reason: str | None = None
    path: str | None = None
    args: list[str | None] | None = None
    timeout: str | None = None


class _Globals(msgspec.Struct):
    invoke_interval: str | None = None
    timeout: str | None = None
    max_output_length: int | None = None
    concurrency: int | None = None
    enable_message_change_based_condition_update: bool | None = None
    skip_initial_status: bool | None = None


class _File(msgspec.Struct, rename={"plugin_config": "pluginconfig", "metrics_reporting": "metricsreporting"}):
    plugin: str | None = None
    plugin_config: _Globals | None = None
    source: str | None = None
    conditions: list[_Default | None] | None = None
    rules: list[_Rule] | None = None
    metrics_reporting: bool | None = None


def _parse(raw: bytes) -> _File:
    """Go's JSON finds a field whatever the case of its key, and takes null for "not given"."""
    # What is no UTF-8 is replaced, not refused.
    content = msgspec.json.decode(raw.decode("utf-8", "replace"))
    return msgspec.convert(_lower_keys(content), _File)


def _lower_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key.lower(): _lower_keys(item) for key, item in value.items()}
    return [_lower_keys(item) for item in value] if isinstance(value, list) else value


def _monitor(file: _File, programs: Path | None) -> Monitor:
    if file.plugin != "custom":
        raise ValueError(f'plugin is {file.plugin or ""!r}; it must be "custom"')
    given = file.plugin_config or _Globals()
    values = {
        "interval": _seconds("pluginConfig.invoke_interval", given.invoke_interval),
        "timeout": _seconds("pluginConfig.timeout", given.timeout),
        "max_output": given.max_output_length,
        "concurrency": given.concurrency,
        "message_changes": given.enable_message_change_based_condition_update,
        "skip_initial_status": given.skip_initial_status,
    }
    known: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    return Monitor(
        source=file.source or "",
        defaults=tuple(_default(condition or _Default()) for condition in file.conditions or ()),
        rules=tuple(_rule(index, rule, programs) for index, rule in enumerate(file.rules or ())),
        **known,
    )


def _default(given: _Default) -> Default:
    return Default(given.type or "", given.reason or "", given.message or "")


def _rule(index: int, given: _Rule, programs: Path | None) -> Rule:
    args = tuple(word or "" for word in given.args or ())
    timeout = _seconds(f"rules[{index}].timeout", given.timeout)
    path = given.path or ""
    if path == START and args:
        path, args = f"{IMAGE_PROGRAMS}detectors/{args[0]}.py", args[1:]
    if programs and path.startswith(IMAGE_PROGRAMS):
        path = str(programs.absolute() / path.removeprefix(IMAGE_PROGRAMS))
    return Rule(given.type or "", given.condition or "", given.reason or "", path, args, timeout)


def _seconds(field: str, text: str | None) -> float | None:
    try:
        return None if text is None else duration.seconds(text)
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from error
