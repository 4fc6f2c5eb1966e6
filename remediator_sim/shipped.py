"""Where the shipped programs and manifests lie: detectors/, operations/, nodelib/ and what of deploy/ is needed."""

from pathlib import Path

HERE = Path(__file__).resolve().parent


def folder() -> Path:
    """In an installed wheel a folder of this package, otherwise the checkout itself."""
    packed = HERE / "shipped"
    return packed if packed.is_dir() else HERE.parent
