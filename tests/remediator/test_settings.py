"""What an operator may set."""

import pytest

from remediator.settings import address


@pytest.mark.parametrize(
    ("listen", "found"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("localhost:0", ("localhost", 0)),
        (":65535", ("", 65535)),
        ("[::1]:80", ("::1", 80)),
        ("::1:80", None),
        (":65536", None),
        ("h:80/x", None),
        ("a@h:80", None),
        ("80", None),
        ("", None),
    ],
)
def test_an_address_is_a_host_and_a_port(listen: str, found: tuple[str, int] | None) -> None:
    assert address(listen) == found
