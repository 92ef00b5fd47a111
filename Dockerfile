# The image of FinPile's Beam workers (Spark, Flink, Dataflow). See docs/guide-runners.md.
#
#     docker build -t finpile-worker .
#
# The Beam version is that of constraints.txt: worker and launcher must agree on it.
ARG BEAM_VERSION=2.77.0

FROM apache/beam_python3.11_sdk:${BEAM_VERSION} AS wheel
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY finpile finpile
COPY cli/finpile_cli cli/finpile_cli
COPY pipelines/finpile_pipelines pipelines/finpile_pipelines
COPY tokenizer/finpile_tokenizer tokenizer/finpile_tokenizer
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM apache/beam_python3.11_sdk:${BEAM_VERSION}
# The user of the worker processes; root for engines that mount folders which only root may write (Dataflow does).
ARG RUN_AS=finpile
COPY --from=wheel /source/constraints.txt /wheels/*.whl /tmp/wheels/
RUN pip install --no-cache-dir -c /tmp/wheels/constraints.txt /tmp/wheels/*.whl && rm -r /tmp/wheels

# Numba keys its cache by CPU; `generic` code is the same for every host, at some cost in speed. Its cache folder must be
# writable by whoever runs: Numba passes over one that is not, and compiles again.
# https://numba.readthedocs.io/en/stable/reference/envvars.html
ENV NUMBA_CPU_NAME=generic \
    NUMBA_CACHE_DIR=/opt/finpile/numba \
    RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
RUN id -u "${RUN_AS}" >/dev/null 2>&1 || useradd --create-home --uid 1000 "${RUN_AS}"; \
    install -d -o "${RUN_AS}" "${NUMBA_CACHE_DIR}"
USER ${RUN_AS}
RUN python -c "import finpile.dedup, finpile_tokenizer; finpile.dedup.compile_kernels(); finpile_tokenizer.compile_kernels()"

# The base image's: it starts Beam's worker, or with --worker_pool a pool of them.
ENTRYPOINT ["/opt/apache/beam/boot"]
