"""GPUs that Pods hold without using them are given back, with notice."""
