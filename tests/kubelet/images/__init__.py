"""The images of the Dockerfiles as tars, for real nodes on a machine without docker."""
