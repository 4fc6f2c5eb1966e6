"""A BMC that speaks IPMI 2.0, through ipmitool: for machines whose BMC is too old for Redfish.

The password goes through ipmitool's environment, never its command line. Whose machine it is, is told by the command
Get System GUID (IPMI 2.0, 22.14), which a BMC need not have. It is asked for raw, since it depends on the version of
ipmitool in which order `mc guid` prints the bytes.
"""

import os
import re
import shutil
import subprocess

from nodelib.bmc.entry import Entry
from nodelib.bmc.identity import identify, turned
from nodelib.bmc.power import Silent, Steps
from nodelib.contract.operation import Refused

TIMEOUT = 40.0  # seconds; ipmitool itself asks 4 times, 3 seconds apart
STATE = re.compile(r"Chassis Power is (\w+)", re.IGNORECASE)
NOT_LET_IN = re.compile(r"RAKP 2|unauthorized name|password|privilege", re.IGNORECASE)
POWER, SYSTEM_GUID = ("chassis", "power"), ("raw", "0x06", "0x37")
NOT_TOLD = re.compile(r"rsp=0x(?!c0|c3)", re.IGNORECASE)  # a completion code, and not that it is busy


class Ipmi:
    """The chassis behind one BMC."""

    steps = Steps("off", "on")

    def __init__(self, entry: Entry, system_uuid: str):
        """Read whose it is. Raises Refused for another machine's or an image without ipmitool, Silent."""
        self.entry, program = entry, shutil.which("ipmitool")
        if program is None:
            raise Refused("this image has no ipmitool: use the BMC's Redfish, or an image with ipmitool")
        where = ("-I", "lanplus", "-H", entry.host, "-p", str(entry.port), "-U", entry.username)
        self._words = (program, *where, "-E", "-N", "3", "-R", "4")
        self.identity = identify(spellings(self._run(*SYSTEM_GUID, optional=True)), system_uuid, entry)

    def power(self) -> str:
        """Return On or Off."""
        text = self._run(*POWER, "status")
        match = STATE.search(text)
        if not match:
            raise Silent(f"ipmitool says of the power: {' '.join(text.split())[:200]}")
        return match[1].capitalize()

    def tell(self, step: str) -> None:
        """Send one step, once."""
        self._run(*POWER, step)

    def shown(self, step: str) -> str:
        """The whole command line."""
        return f"run {' '.join((*self._words, *POWER, step))}"

    def _run(self, *words: str, optional: bool = False) -> str:
        """Return what ipmitool prints, "" for an `optional` command that the BMC does not carry out."""
        step = " ".join(words)
        try:
            done = subprocess.run(
                [*self._words, *words],
                env={**os.environ, "LC_ALL": "C", "IPMI_PASSWORD": self.entry.password},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Silent(f"ipmitool {step} did not end within {TIMEOUT:g} s") from error
        output = self.entry.hidden(" ".join(f"{done.stdout} {done.stderr}".split()))[:300]
        if done.returncode == 0:
            return self.entry.hidden(done.stdout)
        if optional and NOT_TOLD.search(output):
            return ""
        if NOT_LET_IN.search(output):
            raise Refused(f"the BMC does not let user {self.entry.username} in, mend {self.entry.secret}: {output}")
        raise Silent(f"ipmitool {step} exited {done.returncode}: {output}")


def spellings(printed: str) -> list[str]:
    """Return the UUID that these 16 bytes may be: as they came, and turned round; [] for anything else.

    >>> spellings(" 33 44 55 66\\n")
    []
    """
    digits = "".join(re.findall(r"\b[0-9a-f]{2}\b", printed.lower()))
    return [dashed(order) for order in (digits, turned(digits))] if len(digits) == 32 else []


def dashed(digits: str) -> str:
    """Return 32 hex digits as a UUID is written."""
    return "-".join(digits[start:end] for start, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
