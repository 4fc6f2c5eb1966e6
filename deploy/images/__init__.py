"""The Dockerfiles of both images, and every pin of what is built in Go."""
