"""The file of `--chat`: what it may say, and what is wrong with it."""

from pathlib import Path

import pytest

from remediator.core.policy import Severity
from remediator.tickets.channels.rooms import Apprise, Slack, load

GOOD = """
slack: {tokenFile: slack-token}
rooms:
  gpu-team: {slack: C0123456789, severity: [Critical, Warning], routes: [gpu]}
  pager: {apprise: pager-urls}
"""


def test_rooms_are_read_with_their_files_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text(GOOD)
    rooms = load(tmp_path / "chat.yaml")
    assert rooms["gpu-team"].place == Slack("C0123456789", tmp_path / "slack-token")
    assert rooms["pager"].place == Apprise(tmp_path / "pager-urls")
    assert [rooms["gpu-team"].takes(severity, "gpu") for severity in Severity] == [True, True, False]
    assert not rooms["gpu-team"].takes(Severity.CRITICAL, "default")
    assert [rooms["pager"].takes(severity, "any") for severity in Severity] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rooms: {}", "rooms"),
        ("rooms: {a: {slack: C01}}", "slack: rooms.a needs it: write slack: {tokenFile: slack-token}"),
        ("rooms: {a: {}}", "rooms.a: give either slack, the id of a channel, or apprise, a file of URLs"),
        ("rooms: {a: {apprise: u, slack: C01}}", "rooms.a: give either slack"),
        ("rooms: {A_B: {apprise: u}}", "rooms.A_B: a name has at most 63 small letters"),
        ("rooms: {a: {apprise: u, severity: []}}", "rooms.a.severity is empty: the room would hear of nothing"),
        ("rooms: {a: {apprise: u, severity: [Fatal]}}", ".rooms[...].severity[0]"),
        ("rooms: {a: {apprise: 'slack://SECRET'}}", "rooms.a.apprise: it is not the name of a file beside this one"),
        ("rooms: {a: {apprise: ..}}", "rooms.a.apprise: it is not the name of a file beside this one"),
        ("rooms: {a: {apprise: u}, b: {apprise: u}}", "two of them are the same channel or file"),
        ("{slack: {tokenFile: t}, rooms: {a: {slack: '#gpu'}}}", "rooms.a.slack is '#gpu', not the id of a channel"),
        (
            "{slack: {tokenFile: t, url: 'http://SECRET/'}, rooms: {a: {slack: C01}}}",
            "slack.url is not https://HOST/api/",
        ),
        ("{slack: {tokenFile: 'xoxb SECRET'}, rooms: {a: {slack: C01}}}", "slack.tokenFile: it is not the name"),
        ("{rooms: {a: {apprise: u}}, room: {}}", "unknown field `room`"),
    ],
)
def test_a_mistake_is_named_with_file_and_field_and_no_secret(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "chat.yaml").write_text(text)
    with pytest.raises(ValueError) as raised:
        load(tmp_path / "chat.yaml")
    assert says in str(raised.value)
    assert str(tmp_path / "chat.yaml") in str(raised.value)
    assert "SECRET" not in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"chat\.yaml: .*; write the file as docs/chat.md shows"):
        load(tmp_path / "chat.yaml")
