"""What the page says of attributes is what is so."""

import re
from pathlib import Path

import yaml

from remediator.core import names
from remediator.scheduler.attributes.catalog import ATTRIBUTES, WHOLE
from remediator.scheduler.attributes.requirement import AttributeOperator
from remediator.scheduler.attributes.selector import selector

PAGE = (Path(__file__).parents[4] / "docs" / "scheduler.md").read_text()
SECTION = PAGE.partition("## Asking for GPUs by attributes\n")[2].partition("\n## ")[0]


def test_the_page_has_every_attribute_with_its_labels() -> None:
    rows = [line.strip("| ").split("|") for line in SECTION.splitlines() if line.startswith("| `")]
    listed = {cells[0].strip("` "): [re.findall("`([^`]+)`", cell) for cell in (*cells[2:4], "")[:2]] for cells in rows}
    assert listed == {name: [_labels(name, vendor) for vendor in ("nvidia.com/", "amd.com/")] for name in ATTRIBUTES}


def _labels(name: str, vendor: str) -> list[str]:
    ways = ATTRIBUTES[name].labels.get(vendor, ())
    return [label.replace("{resource}", WHOLE) for way in ways for label in way]


def test_every_example_on_the_page_can_be_read() -> None:
    blocks = re.findall("```yaml\n(.*?)```", SECTION, flags=re.DOTALL)
    annotations = [yaml.safe_load(block)["metadata"]["annotations"] for block in blocks]
    asked = [
        selector(*(entry.get(name) for name in (names.GPU, names.GPU_PREFERRED, names.GPU_AFFINITY)))
        for entry in annotations
    ]
    assert [(len(each.required), len(each.preferred), each.mistake) for each in asked] == [(3, 2, ""), (1, 1, "")]


def test_the_page_has_every_operator_and_the_mistake_that_is_shown() -> None:
    assert all(f"`{operator}`" in SECTION for operator in AttributeOperator)
    assert selector("memory>=40Gx", None, None).mistake in SECTION
