"""Lines of mountinfo: what they say, and which are none."""

import pytest

from nodelib.host.mountinfo import MountLine, parse, parse_line, unescape

ROOT = "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro"
DATA = r"90 25 0:51 /a\040b /mnt/my\040data ro master:7 propagate_from:2 - nfs4 server:/export rw,vers=4.2"


def test_a_line_says_where_what_is_mounted_with_which_options_and_whether_it_follows_another_namespace() -> None:
    assert parse_line(ROOT) == MountLine(
        "/", "8:1", "/", "ext4", "/dev/sda1", "rw,relatime", "rw,errors=remount-ro", follows=False
    )
    assert parse_line(DATA) == MountLine(
        "/mnt/my data", "0:51", "/a b", "nfs4", "server:/export", "ro", "rw,vers=4.2", follows=True
    )


@pytest.mark.parametrize(
    "line",
    ["", "garbage", ROOT.replace(" - ", " "), ROOT.replace("8:1", "8"), ROOT.replace(" / / ", " / relative "),
     ROOT.replace(" rw,errors=remount-ro", ""), ROOT.replace("ext4", "")],
)  # fmt: skip
def test_a_line_that_makes_no_sense_is_counted_and_hides_no_other(line: str) -> None:
    with pytest.raises(ValueError):
        parse_line(line)
    mounts, garbled = parse(f"{ROOT}\n{line}\n{DATA}\n")
    assert ([mount.point for mount in mounts], garbled) == (["/", "/mnt/my data"], 1)


def test_octal_escapes_are_undone_and_nothing_else_is() -> None:
    assert unescape(r"a\040b\134c\011d\9") == "a b\\c\td\\9"
