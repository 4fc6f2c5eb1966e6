"""What programs on nodes share is tested beside them, with the fixtures of their tests."""

from tests.detectors.conftest import nvml_library

__all__ = ["nvml_library"]
