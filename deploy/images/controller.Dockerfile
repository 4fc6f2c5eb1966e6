# The controller: docker build -f deploy/images/controller.Dockerfile -t REGISTRY/remediator/controller:TAG .
FROM python:3.11-slim-bookworm
COPY requirements.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.txt
COPY remediator /opt/remediator/remediator
COPY deploy/images/remediator /usr/local/bin/remediator
RUN python3 -m compileall -q --invalidation-mode unchecked-hash /opt/remediator
USER 65532:65532
CMD ["remediator", "run"]
