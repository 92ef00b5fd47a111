# The image of FinPile's Beam workers (Spark, Flink, Dataflow). See docs/guide-runners.md.
#
#     docker build -t finpile-worker .                        # --target template: also the launcher of a Flex Template
#
# BASE is any image with `python` (of the launcher's minor version), `pip` and Beam's entry point /opt/apache/beam/boot.
# The Beam version is that of constraints.txt: worker and launcher must agree on it.
ARG BEAM_VERSION=2.77.0
ARG BASE=docker.io/apache/beam_python3.11_sdk:${BEAM_VERSION}
ARG LAUNCHER=gcr.io/dataflow-templates-base/python311-template-launcher-base:latest

FROM ${BASE} AS wheel
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY finpile finpile
COPY cli/finpile_cli cli/finpile_cli
COPY pipelines/finpile_pipelines pipelines/finpile_pipelines
COPY tokenizer/finpile_tokenizer tokenizer/finpile_tokenizer
COPY trainer/finpile_trainer trainer/finpile_trainer
# The secrets are optional: a pip.conf for another index than PyPI and the certificate of its server. No layer has them.
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.pem \
    pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM ${BASE} AS worker
# Extras of pyproject.toml: the clients of Google Cloud and of S3.
ARG EXTRAS=gcp,s3
# The user of the worker processes; root for engines that mount folders which only root may write (Dataflow does).
ARG RUN_AS=finpile
COPY --from=wheel /source/constraints.txt /wheels/*.whl /tmp/wheels/
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.pem \
    pip install --no-cache-dir -c /tmp/wheels/constraints.txt "$(echo /tmp/wheels/*.whl)[${EXTRAS}]" && rm -r /tmp/wheels

# Numba keys its cache by CPU; `generic` code is the same for every host, at some cost in speed. Its cache folder must be
# writable by whoever runs: Numba passes over one that is not, and compiles again.
# https://numba.readthedocs.io/en/stable/reference/envvars.html
ENV NUMBA_CPU_NAME=generic \
    NUMBA_CACHE_DIR=/opt/finpile/numba \
    RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
RUN id -u "${RUN_AS}" >/dev/null 2>&1 || useradd --create-home --uid 1000 "${RUN_AS}"; \
    install -d -o "${RUN_AS}" "${NUMBA_CACHE_DIR}"
USER ${RUN_AS}
RUN python -c "import finpile.clean.warmup, finpile.dedup, finpile_tokenizer; \
    [module.compile_kernels() for module in (finpile.clean.warmup, finpile.dedup, finpile_tokenizer)]"

# Beam's entry point starts one worker, or with --worker_pool a pool of them.
ENTRYPOINT ["/opt/apache/beam/boot"]

# The launcher of the Flex Template (pipelines/runners/dataflow.md): the worker with Google's launcher, from an image that
# has nothing else of use. Only --target template needs it.
FROM ${LAUNCHER} AS launcher

FROM worker AS template
COPY --from=launcher /opt/google/dataflow/python_template_launcher /opt/google/dataflow/python_template_launcher
COPY pipelines/runners/dataflow/template.py /template/template.py
ENV FLEX_TEMPLATE_PYTHON_PY_FILE=/template/template.py

# Without --target.
FROM worker
