"""A BMC that speaks IPMI 2.0, through ipmitool: for machines whose BMC is too old for Redfish.

The password goes through ipmitool's environment, never its command line. IPMI does not say reliably whose machine it
is: unlike with Redfish, nothing here notices a wrong address.
"""

import os
import re
import shutil
import subprocess

from nodelib.bmc.power import Entry, Silent, Steps
from nodelib.contract.operation import Refused

TIMEOUT = 40.0  # seconds; ipmitool itself asks 4 times, 3 seconds apart
STATE = re.compile(r"Chassis Power is (\w+)", re.IGNORECASE)
NOT_LET_IN = re.compile(r"RAKP 2|unauthorized name|password|privilege", re.IGNORECASE)


class Ipmi:
    """The chassis behind one BMC."""

    steps = Steps("off", "on")

    def __init__(self, entry: Entry):
        """Raises Refused when this image has no ipmitool."""
        self.entry, program = entry, shutil.which("ipmitool")
        if program is None:
            raise Refused("this image has no ipmitool: use the BMC's Redfish, or an image with ipmitool")
        where = ("-I", "lanplus", "-H", entry.host, "-p", str(entry.port), "-U", entry.username)
        self._words = (program, *where, "-E", "-N", "3", "-R", "4", "chassis", "power")

    def power(self) -> str:
        """Return On or Off."""
        text = self._run("status")
        match = STATE.search(text)
        if not match:
            raise Silent(f"ipmitool says of the power: {' '.join(text.split())[:200]}")
        return match[1].capitalize()

    def tell(self, step: str) -> None:
        """Send one step, once."""
        self._run(step)

    def shown(self, step: str) -> str:
        """The whole command line."""
        return f"run {' '.join((*self._words, step))}"

    def _run(self, step: str) -> str:
        try:
            done = subprocess.run(
                [*self._words, step],
                env={**os.environ, "LC_ALL": "C", "IPMI_PASSWORD": self.entry.password},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Silent(f"ipmitool chassis power {step} did not end within {TIMEOUT:g} s") from error
        output = self.entry.hidden(" ".join(f"{done.stdout} {done.stderr}".split()))[:300]
        if done.returncode == 0:
            return self.entry.hidden(done.stdout)
        if NOT_LET_IN.search(output):
            raise Refused(f"the BMC does not let user {self.entry.username} in, mend {self.entry.secret}: {output}")
        raise Silent(f"ipmitool chassis power {step} exited {done.returncode}: {output}")
