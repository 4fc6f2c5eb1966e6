"""What each step of a lifecycle table does: one total mapping per table."""
