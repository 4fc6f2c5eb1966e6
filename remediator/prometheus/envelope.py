"""The JSON of an answer of Prometheus, Thanos or VictoriaMetrics."""

import msgspec

# Infos that speak of the name or the buckets of a metric. Any other says that samples were left out.
HARMLESS = ("metric might not be a counter", "forced to be monotonic")


class Series(msgspec.Struct, frozen=True):
    """One series of an instant vector; `value` is absent where it is a histogram."""

    metric: dict[str, str] = msgspec.field(default_factory=dict)
    value: tuple[float, str] | None = None


class Vector(msgspec.Struct, frozen=True, tag_field="resultType", tag="vector"):
    """One sample for each series."""

    result: tuple[Series, ...]


class Matrix(msgspec.Struct, frozen=True, tag_field="resultType", tag="matrix"):
    """Many samples for each series."""


class Scalar(msgspec.Struct, frozen=True, tag_field="resultType", tag="scalar"):
    """A number without a series."""


class PromqlString(msgspec.Struct, frozen=True, tag_field="resultType", tag="string"):
    """A string."""


class Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """An answer with all that says whether it is whole."""

    status: str
    data: Vector | Matrix | Scalar | PromqlString | None = None
    error_type: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()
    is_partial: bool = False
    partial_response: bool = False


class _Refused(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of an answer whose data is of no type that is known."""

    status: str
    error_type: str = ""
    error: str = ""


def decode(body: bytes) -> Envelope | None:
    """The answer; None where it is none."""
    try:
        return msgspec.json.decode(body, type=Envelope)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        refused = msgspec.json.decode(body, type=_Refused)
    except (msgspec.MsgspecError, RecursionError):
        return None
    known = refused.status == "error"
    return Envelope(refused.status, error_type=refused.error_type, error=refused.error) if known else None


def matters(info: str) -> bool:
    """Whether an info says that the answer may not be whole."""
    return not any(text in info for text in HARMLESS)
