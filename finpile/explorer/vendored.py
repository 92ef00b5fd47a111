"""The libraries of the pages that others wrote, as files in `pages/vendor`, with the archives that they are from.

    python -m finpile.explorer.vendored

fetches the archives again, compares them with their checksums, and writes the files. It needs the network.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_VENDOR = Path(__file__).parent / "pages" / "vendor"


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """A library of the pages."""

    name: str
    version: str
    license: str
    sha256: str
    """Of the archive of the package."""
    files: Mapping[str, str]
    """By name below `pages/vendor/NAME`: the path in the archive."""

    @property
    def url(self) -> str:
        return f"https://registry.npmjs.org/{self.name}/-/{self.name}-{self.version}.tgz"


_PARQUET = (
    "assemble",
    "column",
    "constants",
    "convert",
    "datapage",
    "delta",
    "encoding",
    "geoparquet",
    "metadata",
    "plain",
    "schema",
    "snappy",
    "thrift",
    "variant",
    "wkb",
)
LIBRARIES = (
    Library(
        name="hyparquet",
        version="1.31.5",
        license="MIT",
        sha256="5fb6b118fcbc4575771204acd0aa5cab532f40be92339094b7cc756d79830ab5",
        files={"LICENSE": "LICENSE", **{f"{name}.js": f"src/{name}.js" for name in _PARQUET}},
    ),
    Library(
        name="fzstd",
        version="0.1.1",
        license="MIT",
        sha256="5ed2ee2d3439067be211d0093292c708a831045372342c897437e5a4997c45c5",
        files={"LICENSE": "LICENSE", "fzstd.mjs": "esm/index.mjs"},
    ),
)
#: SHA-256 of each file below `pages/vendor`, in the order of the paths.
CHECKSUMS = {
    "fzstd/LICENSE": "62249119bb7df6e54300f37a37145c26a6d4420410aac8881a119c5b427cf751",
    "fzstd/fzstd.mjs": "1a901fc5a58c349bbdb4f2aa1e688637ef56891ec58243a9f0cd863166b0d2a4",
    "hyparquet/LICENSE": "6e19a315e03f36020f37dedcb1dd93b4eba6ebfd94ccdd13ec55b940776fb55e",
    "hyparquet/assemble.js": "1f793bcdb8b82926fbd79d27023656ad63ec4cd6b856b2b4813d0e1fc79520e8",
    "hyparquet/column.js": "fcd0b7c8dab543affa29b8fbc6a2552ac3c9442fff053479e41cbf42118097ad",
    "hyparquet/constants.js": "b9e1a6a5c03018bd17f8faf05b39fe1abeacaff486f472750db51a5a14158702",
    "hyparquet/convert.js": "584ce5c1779f43073100645964fa3fcfe4bdd9898e474a7b0ad326e75e44b342",
    "hyparquet/datapage.js": "a303c037e5c78dbd893444301e2a712b429c788c6dde524d7020e543619eb6be",
    "hyparquet/delta.js": "46bcef16cb565b3e1bb6c778beed35ab05db1b15481db1764591f1d6305248df",
    "hyparquet/encoding.js": "bdf777d370fc2d70b630cae537318308694743aae696c93dd5fa6b944a75d496",
    "hyparquet/geoparquet.js": "3be4dc1294c2a6f441411acb631f4ccecc3c42447c3c5bb55c0def2b23703b05",
    "hyparquet/metadata.js": "f85823d030eb81606c12b609eaab0f6c34dbea24a8250d2fb7afddc6f1b54329",
    "hyparquet/plain.js": "39761e015fdba42d4eed6e182f3fa383891be918ba6c1321155ccbc804de7308",
    "hyparquet/schema.js": "7e6c8d1cd0e369cab4db8571a145d02e7b2bd60aab9c59dd0f7933f645471cef",
    "hyparquet/snappy.js": "e80c24e127874e562d47d685b9712b8067ce76354e24883d0a8badacfd16b8a6",
    "hyparquet/thrift.js": "70e89035a454b241fd1dc3b2218edfad2cb535b11321a4ccdde83b20adea05f8",
    "hyparquet/variant.js": "2937226366f421e605ed46277f77d0e8e062de6d0cc0aaf57256a3a26d1c5ce2",
    "hyparquet/wkb.js": "0328003b13e78a07482c989fe141e61f9e6075b2ff05c44be287fa39328bb37a",
}


def files_of(library: Library, archive: bytes) -> Iterator[tuple[str, bytes]]:
    """The path below `pages/vendor` and the content of each file that is taken from an archive.

    Raises: ValueError if the archive is another one.
    """
    if hashlib.sha256(archive).hexdigest() != library.sha256:
        raise ValueError(f"{library.url} does not have the checksum that is recorded here")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for name, path in library.files.items():
            member = tar.extractfile(f"package/{path}")
            if member is None:
                raise ValueError(f"{library.url} has no file {path}")
            yield f"{library.name}/{name}", member.read()


def vendored() -> dict[str, bytes]:
    """The files in `pages/vendor` by path."""
    found = sorted(path for path in _VENDOR.rglob("*") if path.is_file())
    return {path.relative_to(_VENDOR).as_posix(): path.read_bytes() for path in found}


def main() -> None:
    for library in LIBRARIES:
        with urllib.request.urlopen(library.url) as response:
            archive = response.read()
        for path, content in files_of(library, archive):
            target = _VENDOR / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            sys.stdout.write(f"{hashlib.sha256(content).hexdigest()}  {path}\n")


if __name__ == "__main__":
    main()
