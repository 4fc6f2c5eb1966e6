module remediator.dev/tests/bench/go_extender

go 1.26.0
