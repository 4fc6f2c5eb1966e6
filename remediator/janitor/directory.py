"""The directory file: how owners are reached, by the value of their label, or else by their namespace. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
import yaml
from msgspec import Meta

FORM = "write owners: and namespaces:, each a mapping of names to team, github, mail and chat"
_Word = Annotated[str, Meta(max_length=128, pattern=r"^\S*$")]


class Contact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where somebody is reached; "" where he is not."""

    team: _Word = ""
    github: _Word = ""
    mail: Annotated[str, Meta(max_length=254, pattern=r"^(\S+@\S+)?$")] = ""
    chat: _Word = ""


class _DirectoryFile(msgspec.Struct, forbid_unknown_fields=True):
    owners: dict[str, Contact] = {}
    namespaces: dict[str, Contact] = {}


@dataclass(frozen=True, slots=True)
class Directory:
    """Who is reached how."""

    owners: Mapping[str, Contact] = field(default_factory=dict)
    namespaces: Mapping[str, Contact] = field(default_factory=dict)

    def contact(self, owner: str, namespace: str) -> Contact:
        """Of the owner where he is known, else of whoever answers for the namespace."""
        return self.owners.get(owner) or self.namespaces.get(namespace) or Contact()


def read(text: str) -> Directory:
    """What a directory file says. Raises ValueError that names the field and what to write."""
    try:
        content = yaml.safe_load(text)
        file = msgspec.convert(content if content is not None else {}, _DirectoryFile)
    except yaml.YAMLError as error:
        raise ValueError(f"is no YAML{_line(error)}; {FORM}") from None
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}; {FORM}") from None
    return Directory(file.owners, file.namespaces)


def _line(error: yaml.YAMLError) -> str:
    """Where it is none, without what stands there: people are reached by it."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return f" (line {mark.line + 1})" if mark else ""


def load(path: Path) -> Directory:
    """What the file of --owners-file says. Raises ValueError that names the file, too."""
    try:
        return read(path.read_text("utf-8"))
    except (OSError, ValueError) as wrong:
        raise ValueError(f"--owners-file: {path}: {wrong}") from None
