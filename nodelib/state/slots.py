"""Not all detectors of a node at once: node-problem-detector starts them in the same instant.

Who waits here has imported next to nothing yet and holds 3 MiB; one that works holds 7. A turn ends with its process,
however that ends. Nobody waits for long: where detectors that hang keep all turns, the others go on without one.
"""

import fcntl
import gc
import os
import sys
import time

STATE = "/run/remediator/detectors"
TURNS = 4
PATIENCE, PAUSE = 3.0, 0.1  # seconds
SHARES = "SHARED_PROCESS"  # in the environment: yes where one process does the runs of all detectors
in_fork = False  # whether that process has given this one its turn


def take() -> None:
    """Wait for a turn, and keep it until this process ends. Where the state folder cannot be written nobody waits.

    No garbage is looked for from here on: a run makes little, and gives all back at its end.
    """
    gc.disable()
    if in_fork or {"-h", "--help", "--explain"} & set(sys.argv):  # by hand
        return
    state = state_folder(sys.argv[1:])
    if os.environ.get(SHARES) == "yes":
        from nodelib.forks.ask import hand_over  # few are started so, and by hand nobody is

        hand_over(state)
    folder, until = f"{state}/turns", time.monotonic() + PATIENCE
    try:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - pathlib is a third of what is to be saved
        while not _taken(folder) and time.monotonic() < until:
            time.sleep(PAUSE)
    except OSError:
        return


def state_folder(words: list[str]) -> str:
    """Return the value of --state: argparse itself comes later."""
    folder = STATE
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, _, value = word.partition("=")
        folder = (value or following or STATE) if name == "--state" else folder
    return folder


def _taken(folder: str) -> bool:
    for number in range(TURNS):
        file = os.open(f"{folder}/{number}", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
        else:
            return True
    return False
