"""Rules files of the janitor among the files of `remediator lint`, read as the janitor reads them."""

from collections.abc import Iterable, Iterator

from remediator.kube.manifests.lint import Document, LintError


def wrong_rules(documents: Iterable[Document], text: str) -> Iterator[LintError]:
    """What is wrong with a rules file: what the janitor would not start with, and rules that it would leave out.

    `documents`: those of one file, whose whole text is `text`. What has other fields, too, is no rules file: manifests,
    configurations of node-problem-detector.
    """
    source = next((source for source, document in documents if document.keys() == {"rules"}), "")
    if not source:
        return
    from remediator.janitor import rules

    try:
        janitor_rules = rules.read(text)
    except rules.WrongRules as wrong:
        yield from (LintError(source, "", "", line) for line in str(wrong).splitlines())
        return
    for index, rule in enumerate(janitor_rules):
        if rule.problem:
            yield LintError(source, f"rule {rule.id}", f"rules[{index}].jmespath", rule.problem)
