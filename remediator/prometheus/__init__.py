"""Questions to Prometheus: an answer is a verdict only when it is whole, fresh and without warnings."""
