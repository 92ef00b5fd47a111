"""Licence files of repositories in archives: the nearest one above a file counts, wherever it is in the archive."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.sources import Account, list_inputs, read_file
from finpile.sources.readers.license_files import MAX_FILES, LicenseFiles, identify, is_license_file
from tests.support.archives import tar_of, zip_of

MIT = b"""The MIT License

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files ...
"""
APACHE = b"                                 Apache License\n                           Version 2.0, January 2004\n"
GPL = b"                    GNU GENERAL PUBLIC LICENSE\n                       Version 2, June 1991\n ... GNU Lesser"
BSD = b"Redistribution and use in source and binary forms, with or without\nmodification, are permitted ..."


MAKE: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "a.tar": tar_of,
    "a.tar.gz": lambda files: gzip.compress(tar_of(files)),
    "a.zip": zip_of,
}


def licenses(folder: Path, name: str, data: bytes, format_name: str = "code", **settings: object) -> dict[str, object]:
    """By member: the licence and the file that it is from."""
    (folder / name).write_bytes(data)
    source = SourceConfig(name="N", dataset="D", format=format_name, paths=(name,), **settings)  # type: ignore[arg-type]
    (file,) = list_inputs(source, str(folder))
    accounts: list[Account] = []
    items = list(read_file(file, source, accounts.append))
    assert all(account.balance() == 0 for account in accounts)
    return {
        item.locator.partition("!")[2]: (item.license, item.meta.get("license_file"))
        for item in items
        if isinstance(item, RawDocument)
    }


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_nearest_licence_above_a_file_counts(tmp_path: Path, name: str, is_reversed: bool) -> None:
    files = {
        "repo/a.py": b"x = 1\n",
        "repo/LICENSE": MIT,
        "repo/vendor/lib/b.py": b"y = 2\n",
        "repo/vendor/COPYING": GPL,
        "repo/vendor/lib/c.py": b"# SPDX-License-Identifier: Zlib\n",
        "repo2/d.py": b"z = 3\n",
    }
    if is_reversed:
        files = dict(reversed(files.items()))
    found = licenses(tmp_path, name, MAKE[name](files), members=["*.py"])
    assert found == {
        "repo/a.py": ("MIT", "repo/LICENSE"),
        "repo/vendor/lib/b.py": ("GPL-2.0", "repo/vendor/COPYING"),
        "repo/vendor/lib/c.py": ("Zlib", None),
        "repo2/d.py": (None, None),
    }


def test_source_license_is_that_of_files_without_one(tmp_path: Path) -> None:
    data = tar_of(
        {"a/LICENSE": MIT, "a/x.py": b"x = 1\n", "b/y.py": b"y = 2\n", "c/LICENSE": b"Mine.", "c/z.py": b"z\n"}
    )
    found = licenses(tmp_path, "a.tar", data, members=["*.py"], license="internal")
    assert found == {
        "a/x.py": ("MIT", "a/LICENSE"),
        "b/y.py": ("internal", None),
        "c/z.py": ("internal", "c/LICENSE"),
    }


def test_several_licences_of_a_folder_all_count(tmp_path: Path) -> None:
    data = tar_of({"LICENSE-MIT": MIT, "LICENSE-APACHE": APACHE, "src/x.rs": b"fn main() {}\n"})
    assert licenses(tmp_path, "a.tar", data, members=["*.rs"]) == {"src/x.rs": ("Apache-2.0 AND MIT", "LICENSE-APACHE")}


def test_damaged_archive_has_the_licences_before_the_damage(tmp_path: Path) -> None:
    data = tar_of({"LICENSE": MIT, "x.py": b"x = 1\n", "y.py": bytes(2000)})
    assert licenses(tmp_path, "a.tar", data[:3000], members=["x.py"])["x.py"] == ("MIT", "LICENSE")


def test_other_formats_do_not_walk_an_archive_twice(tmp_path: Path) -> None:
    data = tar_of({"LICENSE": MIT, "x.txt": b"Oil rose.\n"})
    assert licenses(tmp_path, "a.tar", data, "text", members=["*.txt"]) == {"x.txt": (None, None)}


@pytest.mark.parametrize(
    ("text", "identifier"),
    [
        (MIT, "MIT"),
        (APACHE, "Apache-2.0"),
        (GPL, "GPL-2.0"),
        (BSD, "BSD-2-Clause"),
        (BSD + b" Neither the name of the author", "BSD-3-Clause"),
        (b"GNU LESSER GENERAL PUBLIC LICENSE\nVersion 2.1, February 1999", "LGPL-2.1"),
        (b"GNU LESSER GENERAL PUBLIC LICENSE Version 3 ... the GNU General Public License, version 3", "LGPL-3.0"),
        (b"GNU AFFERO GENERAL PUBLIC LICENSE\n Version 3, 19 November 2007", "AGPL-3.0"),
        (b"Mozilla Public License Version 2.0\n====", "MPL-2.0"),
        (b"CC0 1.0 Universal", "CC0-1.0"),
        (b"Creative Commons Attribution 4.0 International", "CC-BY-4.0"),
        (b"# Creative Commons\n*Attribution-ShareAlike 4.0 International*", "CC-BY-SA-4.0"),
        (b"This is free and unencumbered software released into the public domain.", "Unlicense"),
        (b"All rights reserved.", None),
        (b"\xff\xfe\x00", None),
        (b"", None),
    ],
)
def test_licences_are_known_by_their_texts(text: bytes, identifier: str | None) -> None:
    assert identify(text) == identifier


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LICENSE", True),
        ("a/b/licence.txt", True),
        ("COPYING.LESSER", True),
        ("LICENSE-2.0.txt", True),
        ("LICENSE.md", True),
        ("COPYING.GPLv2", True),
        ("UNLICENSE", True),
        ("license.py", False),
        ("LICENSES.json", False),
        ("my-license", False),
        ("copying.c", False),
    ],
)
def test_names_of_licence_files(name: str, expected: bool) -> None:
    assert is_license_file(name) is expected


def test_memory_of_many_licence_files_is_bounded() -> None:
    found = LicenseFiles()
    tracemalloc.start()
    try:
        for number in range(MAX_FILES + 1000):
            found.add(f"{number}/LICENSE", b"All rights reserved.")
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert found.nearest(f"{MAX_FILES - 1}/a.py") is not None
    assert found.nearest(f"{MAX_FILES}/a.py") is None
    other = LicenseFiles()
    other.add("a/" * 5000 + "LICENSE", MIT)
    assert other.nearest("a/" * 5000 + "a.py") is None
