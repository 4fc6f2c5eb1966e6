"""What the kernel's log says against the kernel itself, and of memory that ran out; one judgement for all. No message
of a program counts, whatever its text.
"""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain
from nodelib.contract.memory import Scope
from nodelib.contract.npd import Verdict
from nodelib.kernel.disk_log import many
from nodelib.kernel.kmsg import Line, Log, read_new, run_on

APART, WINDOW = 10.0, 600.0  # seconds: lines nearer to each other are of one event; within which events are many
LONG = 120.0  # seconds from which one event that the kernel repeats is a fault by itself
MOST, CHARS = 4, 220  # lines kept as evidence, and how much of each with the ones behind it
REST = 3  # records behind a line that still tell of it
LOST = "lines of the kernel log were overwritten before they were read"


class EventKind(NamedTuple):
    """One kind of event. `most`: how many within `window` are a fault, 0 for none; `stands`: seconds since the last
    that one stands, 0 for until the next boot. `repeats`: the kernel tells of one event again and again, each time
    within so many seconds; the group `stuck` of `pattern` has how many seconds it had lasted. One that lasts LONG is a
    fault.
    """

    words: str
    pattern: re.Pattern[str]
    most: int = 1
    stands: float = 0.0
    repeats: float = 0.0
    window: float = WINDOW


class KindMemory(NamedTuple):
    """What is known of one kind: when its last events began (seconds since boot), the last line that was a fault, how
    many lines, and the last of them.
    """

    times: tuple[float, ...] = ()
    sure: float = -1.0
    count: int = 0
    last: float = -1.0


class BootMemory(NamedTuple):
    """What is known of this boot: the last record that was read, what was seen by the words of its kind."""

    cursor: int | None = None
    seen: Mapping[str, KindMemory] = {}


class Aside(NamedTuple):
    """What is known beside the log: `verdicts` by text; `notes`, told where all is well."""

    verdicts: Mapping[str, Verdict] = {}
    notes: Sequence[str] = ()


class KernelWatch(NamedTuple):
    """One detector: what it looks for, in what order a line is tried, and what it says of health."""

    name: str
    condition: str
    signs: tuple[EventKind, ...]
    fine: str
    beside: Callable[[argparse.Namespace, Mapping[str, KindMemory], float], Aside] = lambda *_: Aside()
    tune: Callable[[argparse.Namespace, tuple[EventKind, ...]], tuple[EventKind, ...]] = lambda _, signs: (
        signs
    )  # to this kernel


def told(line: Line, signs: Sequence[EventKind]) -> EventKind | None:
    """Return the first sign that the kernel shows by a line, None for what a program wrote into the log."""
    return None if line.written else next((sign for sign in signs if sign.pattern.search(line.text)), None)


def learn(seen: Mapping[str, KindMemory], lines: Iterable[Line], signs: Sequence[EventKind]) -> dict[str, KindMemory]:
    """Return what is known after these lines, which are in the order of the log."""
    known = dict(seen)
    for line in lines:
        if sign := told(line, signs):
            known[sign.words] = _after(known.get(sign.words, KindMemory()), line, sign)
    return known


def _after(seen: KindMemory, line: Line, sign: EventKind) -> KindMemory:
    """Return what is known of a kind after one more line of it; many lines may be of one event."""
    start = max(0.0, line.at - _stuck(line, sign))
    times = seen.times if _goes_on(seen, start, line.at, sign) else (*seen.times, start)[-max(sign.most, 1) :]
    is_long = sign.repeats > 0 and line.at - times[-1] >= LONG
    sure = line.at if sign.most and (is_long or many(times, sign.most, sign.window)) else seen.sure
    return KindMemory(times, sure, min(seen.count + 1, 1 << 40), line.at)


def _stuck(line: Line, sign: EventKind) -> float:
    """Return for how many seconds the event of a line had lasted by then, as far as the line says it."""
    match = sign.pattern.search(line.text)
    return float((match.groupdict().get("stuck") if match else None) or 0)


def _goes_on(seen: KindMemory, start: float, at: float, sign: EventKind) -> bool:
    """Whether a line is of the event before: of one moment with its first, or a repetition of its last."""
    if not seen.times:
        return False
    last = max(seen.last, seen.times[-1])
    return start <= last or at - last < sign.repeats if sign.repeats else abs(at - seen.times[-1]) < APART


def standing(seen: Mapping[str, KindMemory], signs: Sequence[EventKind], now: float) -> list[str]:
    """Return the words of what is a fault now."""
    known = [(sign, seen.get(sign.words, KindMemory())) for sign in signs]
    return [sign.words for sign, kind in known if kind.sure >= 0 and (not sign.stands or now - kind.sure < sign.stands)]


def judge(
    watch: KernelWatch, seen: Mapping[str, KindMemory], aside: Aside, log: Log, now: float
) -> tuple[Verdict, str]:
    """Turn what is known into a verdict and its line."""
    faults = {
        *standing(seen, watch.signs, now),
        *(key for key, verdict in aside.verdicts.items() if verdict is Verdict.FAULT),
    }
    doubts = [*([log.why] if log.why else []), *([LOST] if log.lost else [])]
    doubts += [text for text, verdict in aside.verdicts.items() if verdict is Verdict.UNKNOWN]
    known = [(sign, seen.get(sign.words, KindMemory())) for sign in watch.signs if sign.stands]
    once = [
        f"{sign.words}: not often"
        for sign, memory in known
        if memory.sure < 0 and any(0 <= now - at < sign.stands for at in memory.times)
    ]
    verdicts = {**dict.fromkeys(doubts, Verdict.UNKNOWN), **dict.fromkeys(faults, Verdict.FAULT)}
    return conclude(verdicts, "; ".join([watch.fine, *once, *aside.notes]))


def evidence(log: Log, signs: Sequence[EventKind]) -> list[str]:
    """Return the last lines that tell, each with what stands behind it; bounded, lest it be cut elsewhere."""
    places = [index for index, line in enumerate(log.lines) if told(line, signs)]
    return [f"[{log.lines[place].at:.3f}] {run_on(log.lines, place, REST)[:CHARS]}" for place in places[-MOST:]]


def detector(watch: KernelWatch) -> Detector[BootMemory]:
    """Return the detector that watches for these signs."""
    return Detector(watch.name, watch.condition, lambda run: check(run, watch), BootMemory, Scope.KNOWN_BOOT)


def check(run: Run[BootMemory], watch: KernelWatch) -> Findings:
    """One run: read what is new, add it to what is known, judge."""
    watch = watch._replace(signs=watch.tune(run.options, watch.signs))
    log = read_new(run.options.dev, run.last.cursor)
    seen = learn(run.last.seen, log.lines, watch.signs)
    aside = watch.beside(run.options, seen, run.now)
    verdict, line = judge(watch, seen, aside, log, run.now)
    views: dict[str, Any] = {"kernel log": log.why or "read", "new lines": len(log.lines), "lines were lost": log.lost}
    return Findings(
        verdict,
        line,
        BootMemory(log.cursor, seen),
        evidence=lambda: {"kernel": evidence(log, watch.signs)},
        explain=lambda: explain(views, {**seen, **aside.verdicts, "notes": aside.notes}, verdict),
    )
