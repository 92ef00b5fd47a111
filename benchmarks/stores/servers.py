"""Servers of object stores on loopback, for tests and benchmarks: MinIO (S3), fake-gcs-server (Google Cloud Storage).

The programs are looked for on PATH and in the folder that `pipelines/runners/stores/up` installs them into. Data is in
a temporary folder, which is removed with the server.
"""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BUCKET = "finpile"
KEY, SECRET = "finpile-test", "finpile-test-secret"
_START_SECONDS = 30.0
#: Names of the programs, by kind of store.
PROGRAMS = {"s3": "minio", "gs": "fake-gcs-server"}


class StoreMissing(Exception):
    """The program of a store's server is not installed; the message names the remedy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Store:
    """A running server with the empty bucket `BUCKET`."""

    scheme: str
    port: int

    @property
    def root(self) -> str:
        return f"{self.scheme}://{BUCKET}"

    def environment(self, url: str | None = None) -> dict[str, str]:
        """The environment variables with which clients find the server, or a proxy of it at `url`."""
        address = url or f"http://127.0.0.1:{self.port}"
        if self.scheme == "gs":
            return {
                "STORAGE_EMULATOR_HOST": address,
                "GOOGLE_CLOUD_PROJECT": "finpile",
                "FSSPEC_GS_TOKEN": "anon",
                "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # asks over gRPC, which the emulator does not have
            }
        return {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


def folder_of_programs() -> Path:
    """The folder of programs that are not on PATH."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("FINPILE_STORES") or Path(cache).expanduser() / "finpile" / "stores")


def find_program(scheme: str) -> str:
    """The path of a server's program. Raises: StoreMissing."""
    name = PROGRAMS[scheme]
    found = shutil.which(name) or shutil.which(name, path=str(folder_of_programs()))
    if found is None:
        raise StoreMissing(f"{name} is not installed: run pipelines/runners/stores/up once, which installs it with Go")
    return found


@contextmanager
def serve(scheme: str) -> Iterator[Store]:
    """A server with an empty bucket, on a free port of loopback.

    Raises: StoreMissing; RuntimeError if it does not start.
    """
    program = find_program(scheme)
    with tempfile.TemporaryDirectory(prefix="finpile-store-") as folder:
        Path(folder, BUCKET).mkdir()
        store = Store(scheme=scheme, port=_free_port())
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen(
                _command(program, store, folder), stdout=log, stderr=log, env={**os.environ, **_SERVER_VARIABLES}
            )
            try:
                _wait(store, process, Path(folder, "log"))
                yield store
            finally:
                process.terminate()
                process.wait()


_SERVER_VARIABLES: Mapping[str, str] = {
    "MINIO_ROOT_USER": KEY,
    "MINIO_ROOT_PASSWORD": SECRET,
    "MINIO_BROWSER": "off",
    "MINIO_UPDATE": "off",
    "CI": "on",  # lets MinIO use a disk that also holds the operating system
}


def _command(program: str, store: Store, folder: str) -> list[str]:
    if store.scheme == "s3":
        return [program, "server", "--quiet", "--address", f"127.0.0.1:{store.port}", folder]
    address = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(store.port)]
    return [program, *address, "-backend", "memory", "-data", _without_files(folder)]


def _without_files(folder: str) -> str:
    """A folder that holds the empty bucket and nothing else."""
    root = Path(folder, "data")
    Path(root, BUCKET).mkdir(parents=True)
    return str(root)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def _wait(store: Store, process: subprocess.Popen[bytes], log: Path) -> None:
    path = "/minio/health/ready" if store.scheme == "s3" else "/storage/v1/b"
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", store.port, timeout=5)
        try:
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.05)
    raise RuntimeError(f"{PROGRAMS[store.scheme]} does not start: {log.read_text(errors='replace')[-500:]}")
