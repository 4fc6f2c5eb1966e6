"""Asks the second source of policies: a few questions at once, beside all passes, the first that was wanted first.

Nothing waits here for an answer. Whoever needs one looks what is known, and is woken when there is more.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from remediator.core.confirmation import ConfirmationAnswer, ConfirmationVerdict, Question, judged
from remediator.kube.runtime.leader import LeaderQueue
from remediator.prometheus.reading import CannotTell, Doubt, Reading, values
from remediator.prometheus.source import AT_ONCE, Source

UNANSWERED = 30.0  # seconds without an answer after which a case says so
TELL = 0.25  # seconds between two times that answers are told of while more of them come
NOBODY_TO_ASK = ConfirmationAnswer(
    ConfirmationVerdict.UNKNOWN, "the controller has no Prometheus to ask for spec.confirm; give it --prometheus-url"
)
NO_TURN = ConfirmationAnswer(
    ConfirmationVerdict.UNKNOWN, "Prometheus has not answered yet: more is asked than it answers", open=True
)


@dataclass(frozen=True, slots=True)
class _KnownAnswer:
    """An answer, and until when it may be used."""

    answer: ConfirmationAnswer
    until: float


def _still() -> float:
    return 0.0


class Confirmations:
    """What the second sources say now, and which questions wait. Only who leads asks."""

    def __init__(
        self,
        source: Source | None = None,
        monotonic: Callable[[], float] = _still,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`source`: None where nobody can be asked. `changed` is called when there are new answers."""
        self.source, self._monotonic, self._changed = source, monotonic, changed
        self._known: dict[Question, _KnownAnswer] = {}
        self._wanted: dict[Question, float] = {}  # since when, those of the last admission pass
        self._before_acting: dict[Question, float] = {}  # since when, those of operations that go on
        self._told, self._news = 0.0, False  # when it was told last that there are answers, and whether more have come
        self.queue: LeaderQueue[Question] = LeaderQueue(
            "confirmations",
            self._ask,
            lambda: (*self._wanted, *self._before_acting),
            workers=AT_ONCE,
            essential=False,
            ended=self.clear,
        )

    def clear(self) -> None:
        """Forget everything: another leader asks for itself."""
        self._known, self._wanted, self._before_acting = {}, {}, {}

    def answers(self, questions: Iterable[Question | None]) -> dict[Question, ConfirmationAnswer]:
        """What an admission pass may rest on now; of a question that has waited for long, that it does."""
        now = self._monotonic()
        self._known = {question: known for question, known in self._known.items() if known.until > now}
        known = ((question, self._answer(question, self._wanted)) for question in questions if question)
        return {question: answer for question, answer in known if answer}

    def want(self, questions: Iterable[Question]) -> None:
        """The admission pass waits for answers to these, and to no others."""
        now = self._monotonic()
        self._wanted = {question: self._wanted.get(question, now) for question in questions}
        self.queue.add(*self._wanted)

    def answer(self, question: Question) -> ConfirmationAnswer | None:
        """What an operation may rest on before it goes on; None where it is asked now."""
        answer = self._answer(question, self._before_acting)
        if answer is None or answer.open:
            self._before_acting.setdefault(question, self._monotonic())
            self.queue.add(question)
        return answer

    def _answer(self, question: Question, since: Mapping[Question, float]) -> ConfirmationAnswer | None:
        if self.source is None:
            return NOBODY_TO_ASK
        now, known = self._monotonic(), self._known.get(question)
        if known is not None and known.until > now:
            return known.answer
        return NO_TURN if now - since.get(question, now) >= UNANSWERED else None

    async def _ask(self, question: Question) -> None:
        """Ask, unless nobody wants to know any more."""
        known = self._known.get(question)
        wanted = question in self._wanted or question in self._before_acting
        if self.source is not None and wanted and (known is None or known.until <= self._monotonic()):
            began = self._monotonic()
            reading = await self.source.instant(question.query, question.lookback)
            self._known[question] = _known(reading, question, began, self._monotonic())
            self._wanted.pop(question, None)
            self._before_acting.pop(question, None)
            self._news = True
        self._tell()

    def _tell(self) -> None:
        """A pass over many cases costs more than an answer: it is not made for each."""
        now = self._monotonic()
        if self._news and (self.queue.depth == 0 or now - self._told >= TELL):
            self._told, self._news = now, False
            self._changed()


def _known(reading: Reading, question: Question, began: float, now: float) -> _KnownAnswer:
    """What a reading that was asked for at `began` says, and until when."""
    valid = question.valid_for.total_seconds()
    if isinstance(reading, CannotTell):
        return _unknown(reading.doubt, reading.message, question, now)
    if began + valid <= now:
        late = f"its answer came too late: with a within of {question.within.total_seconds():g} s it may be used for "
        remedy = "look why it is slow, or make spec.confirm.within of the policy longer"
        return _unknown(Doubt.TIMED_OUT, f"{late}{valid:g} s; {remedy}", question, now)
    return _KnownAnswer(judged(values(reading), question.query), began + valid)


def _unknown(doubt: Doubt, message: str, question: Question, now: float) -> _KnownAnswer:
    """No verdict. It has no age: it is known for as long as an answer is from now on, or nobody would ever see it."""
    answer = ConfirmationAnswer(ConfirmationVerdict.UNKNOWN, f"Prometheus: {doubt.value}: {message} ({question.query})")
    return _KnownAnswer(answer, now + question.valid_for.total_seconds())
