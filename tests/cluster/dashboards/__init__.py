"""The dashboards of deploy/monitoring as pictures, of what a real Prometheus answers."""
