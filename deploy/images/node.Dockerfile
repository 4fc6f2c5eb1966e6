# Node-problem-detector with the detectors, and what operation pods run. Written by `make images` from deploy/images/images.toml: change it there.
#   docker build -f deploy/images/node.Dockerfile -t remediator/node:TAG .
FROM golang:1.26-bookworm AS node-problem-detector
WORKDIR /module
COPY deploy/images/modules/node-problem-detector .
RUN CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags "-s -w" -o /node-problem-detector k8s.io/node-problem-detector/cmd/nodeproblemdetector

FROM python:3.11-slim-bookworm
COPY deploy/images/node.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.txt
COPY --from=node-problem-detector /node-problem-detector /usr/local/bin/node-problem-detector
COPY detectors /opt/remediator/detectors
COPY operations /opt/remediator/operations
COPY nodelib /opt/remediator/nodelib
RUN python3 -m compileall -q --invalidation-mode unchecked-hash /opt/remediator/detectors /opt/remediator/operations /opt/remediator/nodelib
USER 0:0
CMD ["node-problem-detector"]
