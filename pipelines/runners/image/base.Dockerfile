# A base for the worker image, from Debian's packages: what /Dockerfile requires of its BASE and nothing else.
# pipelines/runners/image/build makes both files of the context.
FROM scratch
ADD debian.tar /
# Debian's own Python accepts no packages from pip.
RUN python3 -m venv /opt/python
ENV PATH=/opt/python/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8
COPY boot /opt/apache/beam/boot
