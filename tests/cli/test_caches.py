"""Caches of a user without a home folder: nothing is written to the working directory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from finpile_cli.caches import find_cache_folder
from numba.misc.appdirs import AppDirs

UID = os.getuid()


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files of a user without a home folder."""
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.delenv("XDG_CACHE_HOME")
    return tmp_path


def test_caches_have_a_folder_of_this_user(homeless: Path) -> None:
    for _ in range(2):
        assert AppDirs("numba", False).user_cache_dir == "~/.cache/numba"
        find_cache_folder()
        assert AppDirs("numba", False).user_cache_dir == f"{homeless}/finpile-cache-{UID}/numba"
        found = Path(os.environ.pop("XDG_CACHE_HOME"))
        assert found == homeless / f"finpile-cache-{UID}"
        assert (stat.S_IMODE(found.stat().st_mode), found.stat().st_uid) == (0o700, UID)


@pytest.mark.parametrize("is_link", [False, True])
def test_a_folder_that_others_can_write_to_is_not_used(homeless: Path, is_link: bool) -> None:
    place = homeless / f"finpile-cache-{UID}"
    (homeless / "open").mkdir(mode=0o777)
    (homeless / "open").chmod(0o777)
    (homeless / "open").rename(place) if not is_link else place.symlink_to(homeless / "open")
    find_cache_folder()
    found = Path(os.environ["XDG_CACHE_HOME"])
    assert found != place and stat.S_IMODE(found.lstat().st_mode) == 0o700


def test_a_home_folder_and_a_named_one_stay(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    find_cache_folder()
    assert os.environ["XDG_CACHE_HOME"] == "/somewhere"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: "/home/person")
    find_cache_folder()
    assert "XDG_CACHE_HOME" not in os.environ and list(homeless.iterdir()) == []
