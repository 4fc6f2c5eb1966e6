"""How many random examples a test tries: in CI all of them, the same in every run, and elsewhere a quarter.

Elsewhere they are new ones in each run, so that what CI does not try is tried by and by.
"""

import os

SHARE = 1 if os.environ.get("CI") else 4


def examples(most: int) -> int:
    """How many of `most` are to be tried here, at least one."""
    return -(-most // SHARE)
