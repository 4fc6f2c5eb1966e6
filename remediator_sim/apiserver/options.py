"""What a request asks for in its query: dry run, strictness, selectors, paging, watching."""

from collections.abc import Sequence
from typing import NamedTuple

from remediator_sim.apiserver import status

_TRUE = ("1", "t", "true", "T", "TRUE", "True")


class Options(NamedTuple):
    """The query of one request. Times in seconds; empty text where nothing was asked."""

    dry_run: bool = False
    field_validation: str = "Warn"  # Ignore, Warn or Strict
    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_: str = ""
    version: str = ""
    version_match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: float | None = None
    include_object: str = "Metadata"
    grace: int | None = None


_NOTHING = Options()


def _number(values: dict[str, str], key: str) -> int | None:
    text = values.get(key, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _flag(values: dict[str, str], key: str) -> bool:
    return values.get(key, "") in _TRUE


def read(query: Sequence[tuple[str, str]]) -> Options:
    """Read a query. Raises 400 for numbers that are none, 422 for words that are not known."""
    if not query:
        return _NOTHING
    values = dict(query)
    strictness = values.get("fieldValidation") or "Warn"
    if strictness not in ("Ignore", "Warn", "Strict"):
        listed = '"Ignore", "Strict", "Warn"'
        detail = f'Unsupported value: "{strictness}": supported values: {listed}'
        cause = status.StatusCause("fieldValidation", "FieldValueNotSupported", detail)
        raise status.invalid("meta.k8s.io", "CreateOptions", "", [cause])
    dry_run = values.get("dryRun", "")
    if dry_run not in ("", "All"):
        detail = f'Unsupported value: ["{dry_run}"]: supported values: "All"'
        raise status.invalid(
            "meta.k8s.io", "CreateOptions", "", [status.StatusCause("dryRun", "FieldValueNotSupported", detail)]
        )
    return Options(
        dry_run=dry_run == "All",
        field_validation=strictness,
        labels=values.get("labelSelector", ""),
        fields=values.get("fieldSelector", ""),
        limit=_number(values, "limit") or 0,
        continue_=values.get("continue", ""),
        version=values.get("resourceVersion", ""),
        version_match=values.get("resourceVersionMatch", ""),
        watch=_flag(values, "watch"),
        bookmarks=_flag(values, "allowWatchBookmarks"),
        initial_events=_flag(values, "sendInitialEvents") if "sendInitialEvents" in values else None,
        timeout=_number(values, "timeoutSeconds"),
        include_object=values.get("includeObject") or "Metadata",
        grace=_number(values, "gracePeriodSeconds"),
    )


def check_list(options: Options) -> None:
    """Refuse (422) versions and matches that do not go together."""
    field, causes = "resourceVersionMatch", []
    match, version = options.version_match, options.version
    if options.watch and options.initial_events is not None:
        if match != "NotOlderThan":
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            causes.append(status.not_allowed(field, why))
    elif options.watch and match:
        causes.append(
            status.not_allowed(
                field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        )
    elif options.initial_events is not None:
        causes.append(status.not_allowed("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    elif match and not version:
        causes.append(status.not_allowed(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    elif match == "Exact" and version == "0":
        causes.append(status.not_allowed(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if match and match not in ("Exact", "NotOlderThan"):
        detail = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        causes.append(status.StatusCause(field, "FieldValueNotSupported", detail))
    if causes:
        raise status.invalid("meta.k8s.io", "ListOptions", "", causes)


def version_number(text: str) -> int:
    """A resourceVersion as a number. Raises 400 where it is none."""
    if not text.isdigit():
        cause = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise status.bad_request(f"invalid resource version: {cause}")
    return int(text)
