"""The pages hold together: links lead somewhere, and nothing that a reader may type is left untried."""

import re
from pathlib import Path

import pytest

from tests.contract import drawing
from tests.contract.docs.known import APART, CLUSTER, EVERYWHERE, NOT_EMBEDDED, strangers, tried
from tests.contract.docs.output import missing
from tests.contract.docs.pages import ALL, LANGUAGES, PAGES, ROOT, blocks, programs, recipes


@pytest.mark.parametrize("page", drawing.PAGES, ids=lambda page: page.name)
def test_the_drawings_in_the_pages_are_those_of_the_tables(page: Path) -> None:
    text = page.read_text()
    assert "<!-- drawn: " in text
    assert text == drawing.drawn(text), "python -m tests.contract.drawing"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_in_a_page_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_heading_finds_it(page: Path) -> None:
    for file, heading in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text()):
        text = (page.parent / file).read_text() if file else page.read_text()
        titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
        assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_reached_from_the_readme_by_links() -> None:
    reached, new = set(), {ROOT / "README.md"}
    while new:
        reached |= new
        new = {target for page in new for target in linked(page)} - reached
    assert [page.relative_to(ROOT).as_posix() for page in PAGES if page not in reached] == []


def linked(page: Path) -> set[Path]:
    """The pages that a page links to."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    return {path for target in targets if (path := (page.parent / target).resolve()).suffix == ".md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_fence_says_what_it_holds_in_a_word_that_is_known(page: Path) -> None:
    found = blocks(page.name, page.read_text())
    assert [f"{block.page}:{block.line}: {block.language}" for block in found if block.language not in LANGUAGES] == []
    assert len(found) * 2 == len(re.findall(r"^ *```", page.read_text(), flags=re.MULTILINE)), (
        "a fence that is not read"
    )


def test_every_command_in_the_pages_is_run_by_a_test_or_excused_with_a_reason() -> None:
    assert strangers(ALL) == []


def test_every_excuse_is_for_a_command_that_a_page_has() -> None:
    written = {command.text for recipe in ALL for command in recipe.commands}
    assert set(APART) <= written
    assert [part for part in NOT_EMBEDDED if not any(part in text for text in written)] == []


MADE_UP = """
Do this:

```sh
helm install remediator   # nobody knows how
kubectl get nodes | jq .items
```

Then `make love NOT=war` or:

```console
$ FLEET=$(terraform output fleet) echo $FLEET
gpu-1
```
"""


def test_a_command_that_no_test_runs_is_found_wherever_it_stands_in_a_page() -> None:
    assert strangers(recipes("made-up.md", MADE_UP)) == [
        "made-up.md:4: helm install remediator",
        "made-up.md:4: kubectl get nodes | jq .items",
        "made-up.md:11: FLEET=$(terraform output fleet) echo $FLEET",
    ]


def test_the_commands_of_a_made_up_page_that_tests_know_are_taken_with_what_the_page_shows() -> None:
    page = '```sh\nmake test \\\n  NODES=3  # slow\nkubectl apply -f - <<END\na: "b\nEND\n```\n\n```text\nok\n```\n'
    (recipe,) = recipes("made-up.md", page)
    assert [command.text for command in recipe.commands] == [
        "make test \\\n  NODES=3",
        'kubectl apply -f - <<END\na: "b\nEND',
    ]
    assert recipe.output == "ok\n"
    assert len(tried(recipe, EVERYWHERE)) == 1
    assert len(tried(recipe, EVERYWHERE | CLUSTER)) == 2


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("kubectl get nodes -o name | sort > out", ["kubectl", "sort"]),
        ("A=1 make test && echo done; ls", ["make", "echo", "ls"]),
        ("kubectl delete pod $(kubectl get pods -o name | head -1)", ["kubectl", "kubectl", "head"]),
        ('curl -d \'{"a": "|; rm"}\' localhost:8080', ["curl"]),
    ],
)
def test_the_programs_of_a_command_line_are_found(command: str, found: list[str]) -> None:
    assert programs(command) == found


@pytest.mark.parametrize(
    ("shown", "printed", "absent"),
    [
        ("NAME   NODE\na      gpu-1", "NAME     NODE\nb        gpu-2", []),
        ("NAME   NODE", "NAME   PHASE", ["NAME   NODE"]),
        ("reset at 12:00:01 …", "reset at 13:11:59 by hand", []),
        ("well\n…\nsick", "well\nfine\nsick", []),
        ("sick\nwell", "well\nsick", ["well"]),
        ("3 nodes", "4 nodes", ["3 nodes"]),
    ],
)
def test_of_output_that_which_does_not_change_must_be_there_in_its_order(
    shown: str, printed: str, absent: list[str]
) -> None:
    assert missing(shown, printed) == absent


def test_every_test_that_contributing_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    defined = {
        name for path in ROOT.glob("tests/**/test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert named
    assert sorted(named - defined) == []
