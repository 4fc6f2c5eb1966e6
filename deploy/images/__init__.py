"""The two images: one table, a Dockerfile for each, and a tar for machines without docker."""
