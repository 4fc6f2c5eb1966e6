"""The tables of docs/security.md are those that tests try on a real API server."""

from pathlib import Path

from tests.cluster.rights.attacks import ATTACKS
from tests.cluster.rights.granted import JANITOR, LATER, SECOND, SHARED, WATCHDOG, granted, row
from tests.contract.test_manifests import ACCOUNTS

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text()


def rows(heading: str) -> list[str]:
    """The rows of the last table below a heading."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return section.rpartition("|---|\n")[2].partition("\n\n")[0].splitlines()


def test_every_attack_that_is_tried_is_told_and_no_other() -> None:
    assert rows("One worker is one worker") == [attack.row for attack in ATTACKS]


def test_the_rights_of_every_account_are_told_with_those_that_are_used() -> None:
    told = rows("What each account may do")
    optional = {
        SHARED: "remediator",
        JANITOR: "remediator-janitor",
        SECOND: "remediator-scheduler",
        WATCHDOG: "remediator-watchdog",
    }
    assert sorted(told) == sorted(
        [*(row(name) for _, name in ACCOUNTS), *(row(name, file) for file, name in optional.items())]
    )


def test_no_right_is_excused_that_is_not_granted() -> None:
    for account, later in LATER.items():
        assert set(later) <= {str(right) for right in granted(account)}
