"""What tests/conftest.py hands to pytest."""
