"""Reads YAML as kubectl does. Every problem with a file becomes one kind of error, with its line."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

DEEPEST = 100  # levels: far more than any manifest has, far fewer than Python's stack takes
_TOO_DEEP = f"more than {DEEPEST} levels, one in the other"
MOST = 200_000  # values of one document with its anchors unfolded: a few lines of them can stand for billions


class UnreadableYaml(ValueError):
    """What is wrong, and in which line, counted from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line, self.why = line, why

    @property
    def unquoted(self) -> str:
        """The same without any word of the file, which may hold secrets."""
        return f"line {self.line}: " + re.sub("""['"].*['"]""", "(not shown)", self.why, flags=re.DOTALL)


class Document(NamedTuple):
    """One document: the line where it begins, what it says, and keys that one mapping has twice, with their lines."""

    line: int
    value: Any
    doubled: list[tuple[int, str]]


class _Loader(yaml.SafeLoader):
    """A date is text; a value that does not fit its tag, or lies too deep, is an error of YAML's, with its place."""

    level = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.level == DEEPEST:
            raise yaml.composer.ComposerError(None, None, _TOO_DEEP, self.get_mark())
        self.level += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.level -= 1

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError) as error:  # what int(), float() and so on raise
            what = repr(node.value) if isinstance(node, yaml.ScalarNode) else "this"
            why = f"{what} is no {node.tag.rpartition(':')[2]}"
            raise yaml.constructor.ConstructorError(None, None, why, node.start_mark) from error


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents(text: str) -> Iterator[Document]:
    """The documents of one YAML (or JSON) file; empty ones are None. Raises UnreadableYaml at the first bad one.

    A key that is given twice does not end the reading: the last one counts, as in YAML.
    """
    try:
        yield from _parsed(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UnreadableYaml(line, error.problem or error.context or "no YAML") from error
    except yaml.reader.ReaderError as error:
        raise UnreadableYaml(text.count("\n", 0, error.position) + 1, error.reason) from error


def one(text: str) -> Any:
    """What a file of one document says; None for an empty one. Raises UnreadableYaml, also for a key given twice."""
    value = None
    for number, document in enumerate(documents(text)):
        if number:
            raise UnreadableYaml(document.line, "a second document")
        for line, key in document.doubled:
            raise UnreadableYaml(line, f"the key {key!r} is given twice")
        value = document.value
    return value


def _parsed(text: str) -> Iterator[Document]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None  # check_node said so
            doubled = list(_doubled(node))
            yield Document(node.start_mark.line + 1, loader.construct_document(node), doubled)
    finally:
        loader.dispose()


def _doubled(document: yaml.Node) -> Iterator[tuple[int, str]]:
    """Keys that one mapping has twice, with the line of the later one."""
    for count, node in enumerate(_walk(document, ())):
        if count == MOST:
            raise yaml.composer.ComposerError(None, None, f"more than {MOST} values", document.start_mark)
        seen: set[str] = set()
        for key in _keys(node):
            if key.value in seen:
                yield key.start_mark.line + 1, key.value
            seen.add(key.value)


def _walk(node: yaml.Node, above: tuple[yaml.Node, ...]) -> Iterator[yaml.Node]:
    """The node and all below it, anchors unfolded. Raises for an anchor inside itself."""
    if node in above:
        raise yaml.composer.ComposerError(None, None, "an anchor contains itself", node.start_mark)
    if len(above) >= DEEPEST:
        raise yaml.composer.ComposerError(None, None, _TOO_DEEP, node.start_mark)
    yield node
    for part in _parts(node):
        yield from _walk(part, (*above, node))


def _keys(node: yaml.Node) -> list[yaml.ScalarNode]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return [key for key, _ in pairs if isinstance(key, yaml.ScalarNode)]


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in node.value]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
