"""Whether the firmware of this machine names a BMC: a machine without one is not asked for its sensors."""

from collections.abc import Iterator
from pathlib import Path

from nodelib.host.attributes import folders

ACPI_BMC = r"IPI0001:[0-9a-f]{2,}"  # ACPI's name for the system interface of IPMI
SMBIOS_BMC, END = 38, 127  # types of structures: IPMI Device Information; the end of the table
MOST_BYTES = 65_536


def names_bmc(sys: Path) -> bool:
    """Whether ACPI or SMBIOS names one. Raises OSError where what they say cannot be read."""
    (sys / "class").stat()  # a machine may have neither, and none has no classes
    if folders(sys / "bus/acpi/devices", ACPI_BMC):
        return True
    try:
        with (sys / "firmware/dmi/tables/DMI").open("rb") as file:
            table = file.read(MOST_BYTES)
    except FileNotFoundError:
        return False
    return SMBIOS_BMC in types(table)


def types(table: bytes) -> Iterator[int]:
    """Yield the type of each structure of a table of SMBIOS, up to where it is cut off."""
    at = 0
    while at + 4 <= len(table) and table[at + 1] >= 4 and table[at] != END:
        yield table[at]
        strings = table.find(b"\0\0", at + table[at + 1])
        if strings < 0:
            return
        at = strings + 2
