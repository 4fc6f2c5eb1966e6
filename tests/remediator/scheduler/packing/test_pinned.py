"""A workload that a site has written down, and what is said of one that cannot be read."""

import re
from pathlib import Path

import pytest

from remediator.scheduler.attributes.selector import selector
from remediator.scheduler.packing.pinned import FORM, read
from remediator.scheduler.packing.room import CARD, Task

GPU = "nvidia.com/gpu"


def written(folder: Path, text: str) -> Path:
    file = folder / "workload.yaml"
    file.write_text(text)
    return file


def test_a_row_is_a_kind_of_pods_with_its_share(tmp_path: Path) -> None:
    rows = f"- {FORM}\n- {{weight: 5, cpu: 500m}}\n- {{weight: 15, cpu: 96, gpus: {{{GPU}: 8}}}}\n"
    assert read(written(tmp_path, rows)) == {
        Task(8000, 1, CARD, GPU, selector("memory>=40G", None, None)): 0.5,
        Task(500): 0.125,
        Task(96000, 8, CARD, GPU): 0.375,
    }


def test_the_workload_of_the_page_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "packing.md").read_text()
    (shown,) = re.findall(r"^```text\n(- .*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    assert sum(read(written(tmp_path, shown)).values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expected `array`, got `null`; write a list of rows such as {weight: 20"),
        ("[]", "0 rows; write 1 to 1024"),
        ("- {weight: 1, gpu: 1}", "unknown field `gpu` - at `$[0]`"),
        ("- {cpu: 1}", "missing required field `weight`"),
        ("- {weight: 1}\n- {weight: 0}", "row 2: weight is 0; write how many"),
        ("- {weight: .nan}", "row 1: weight is nan"),
        ("- {weight: 1, cpu: lots}", "row 1: cpu is 'lots'; write cores, such as 8 or 500m"),
        (f"- {{weight: 1, gpus: {{{GPU}: 0}}}}", f"row 1: gpus has {GPU}: 0; write a resource such as nvidia.com/gpu"),
        ("- {weight: 1, gpus: {memory: 1}}", "row 1: gpus has memory: 1"),
        (f"- {{weight: 1, gpus: {{{GPU}: 1}}, attributes: memroy>1}}", "row 1: attributes: remediator.dev/gpu: at"),
        ("- [", "while parsing"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_row_and_the_remedy(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read(written(tmp_path, text))
