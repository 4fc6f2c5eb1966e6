# Node-problem-detector with the detectors, and what operation Pods run:
#   docker build -f deploy/images/node.Dockerfile -t REGISTRY/remediator/node:TAG .
FROM golang:1.26-bookworm AS node-problem-detector
WORKDIR /module
COPY deploy/images/modules/node-problem-detector .
RUN CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags "-s -w" -o /node-problem-detector k8s.io/node-problem-detector/cmd/nodeproblemdetector

FROM python:3.11-slim-bookworm
COPY deploy/images/node.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.txt
COPY --from=node-problem-detector /node-problem-detector /usr/local/bin/node-problem-detector
COPY nodelib /opt/remediator/nodelib
COPY detectors /opt/remediator/detectors
COPY operations /opt/remediator/operations
COPY watchdog /opt/remediator/watchdog
RUN python3 -m compileall -q --invalidation-mode unchecked-hash /opt/remediator
# A detector sees the node's devices; the templates of operations without privileges name another user.
USER 0:0
CMD ["node-problem-detector"]
