"""Token shards: reading inverts writing for any sharding; foreign files are refused."""

from __future__ import annotations

from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.errors import ConfigError, InputError
from finpile.tokens import store as store_module
from finpile.tokens.pack import Runs
from finpile.tokens.store import TokenStore, write_token_shard


def write(folder: Path | str, ids: np.ndarray, cuts: list[int], **changes: object) -> None:
    """The sequences as consecutive shards, cut at `cuts`."""
    meta = {"vocab_size": 1000, "eot_id": 999, "tokenizer": "ab12", **changes}
    for number, part in enumerate(np.split(ids, cuts)):
        write_token_shard(f"{folder}/part-{number:05d}-of-{len(cuts) + 1:05d}.arrow", part, **meta)  # type: ignore[arg-type]


def sequences(count: int, length: int = 8, vocab_size: int = 1000) -> np.ndarray:
    return np.random.default_rng(7).integers(0, vocab_size, (count, length))


@given(cuts=st.lists(st.integers(0, 20), max_size=4).map(sorted), picks=st.lists(st.integers(-20, 19), max_size=9))
@settings(max_examples=25, deadline=None)
def test_reading_does_not_depend_on_shard_boundaries(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], picks: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("tokens")
    ids = sequences(20)
    write(folder, ids, cuts)
    store = TokenStore.open(str(folder))
    assert (len(store), store.num_tokens) == (20, 160)
    batch = store.batch(picks)
    assert (batch.dtype, batch.shape) == (np.int64, (len(picks), 8))
    np.testing.assert_array_equal(batch, ids[picks] if picks else np.empty((0, 8)))
    for index in range(20):
        np.testing.assert_array_equal(store[index], ids[index])


@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_cut_sequences_are_the_parts_of_the_stored_ones(tmp_path: Path, length: int) -> None:
    ids = sequences(20)
    write(tmp_path, ids, [3, 3, 11])
    store, parts = TokenStore.open(str(tmp_path)), ids.reshape(-1, length)
    picks = np.random.default_rng(1).integers(-len(parts), len(parts), 50)
    np.testing.assert_array_equal(store.batch(picks, length), parts[picks])
    for beyond in (len(parts), -len(parts) - 1):
        with pytest.raises(IndexError, match=f"of {len(parts)}"):
            store.batch([0, beyond], length)


def test_masks_fractions_and_lengths_that_do_not_divide_are_refused(tmp_path: Path) -> None:
    """A mask would be read as sequences 0 and 1, and three sequences of 8 as eight of 3."""
    write(tmp_path, sequences(3), [])
    store = TokenStore.open(str(tmp_path))
    for picks, kind in (([True, False, True], "bool"), ([0.5], "float64")):
        with pytest.raises(IndexError, match=kind):
            store.batch(np.array(picks))
    for length in (3, 0, -8, 16):
        with pytest.raises(ConfigError, match=f"length is {length}: expected a divisor of 8"):
            store.batch([0], length)


@pytest.mark.parametrize(("vocab_size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_take_two_bytes_up_to_65536_entries(tmp_path: Path, vocab_size: int, dtype: type) -> None:
    ids = np.array([[0, vocab_size - 1]])
    write(tmp_path, ids, [], vocab_size=vocab_size, eot_id=vocab_size - 1)
    store = TokenStore.open(str(tmp_path))
    assert store[0].dtype == dtype
    assert store[0].tolist() == [0, vocab_size - 1]
    assert (store.vocab_size, store.sequence_length, store.eot_id) == (vocab_size, 2, vocab_size - 1)
    assert store.meta.tokenizer == "ab12"


def test_padding_is_no_token_of_the_store(tmp_path: Path) -> None:
    for name, padding in (("a", 3), ("b", 0), ("c", 7)):
        write(tmp_path / name, sequences(4), [], padding=padding)
    store = TokenStore.open(str(tmp_path))
    assert [store.length_of(index) for index in range(12)] == [8, 8, 8, 5, 8, 8, 8, 8, 8, 8, 8, 1]
    assert store.lengths(range(4, 24), 4).tolist() == [4, 4, 4, 1, *[4] * 14, 1, 0]
    assert store.num_tokens == 12 * 8 - 10
    for padding, count in ((8, 1), (1, 0), (-1, 1)):
        with pytest.raises(ConfigError, match=f"padding is {padding}: expected 0 to 7"):
            write(tmp_path / "d", sequences(count), [], padding=padding)


def test_a_local_shard_is_mapped_and_not_copied(tmp_path: Path) -> None:
    write(tmp_path, sequences(64, 512), [])
    store = TokenStore.open(str(tmp_path))
    before = pa.total_allocated_bytes()
    sequence = store[3]
    assert pa.total_allocated_bytes() - before < sequences(64, 512).size
    assert not sequence.flags.writeable
    assert not sequence.flags.owndata


def test_shards_are_read_through_any_filesystem(tmp_path: Path) -> None:
    ids = sequences(10)
    write(tmp_path, ids, [4])
    for path in tmp_path.iterdir():
        fsspec.filesystem("memory").pipe(f"/test-store/{path.name}", path.read_bytes())
    store = TokenStore.open("memory://test-store")
    np.testing.assert_array_equal(store.batch(range(10)), ids)


def test_few_shards_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_MAX_OPEN_SHARDS", 2)
    ids = sequences(12)
    write(tmp_path, ids, [3, 6, 9])
    store = TokenStore.open(str(tmp_path))
    np.testing.assert_array_equal(store.batch(range(12)), ids)
    assert len(store._open) == 2


def test_a_pass_over_all_shards_has_one_open_at_a_time(tmp_path: Path) -> None:
    ids = sequences(12)
    write(tmp_path, ids, [3, 6, 9])
    store, num_open = TokenStore.open(str(tmp_path)), []
    for shard in store.shards():
        num_open.append(len(store._open))
        np.testing.assert_array_equal(shard, ids[:3])
        ids = ids[3:]
    assert (num_open, len(store._open)) == ([1, 1, 1, 1], 0)


def test_shards_of_another_writer_need_no_count_and_may_have_several_batches(tmp_path: Path) -> None:
    ids = sequences(9)
    write(tmp_path / "ours", ids, [])
    table = pa.ipc.open_file(pa.memory_map(str(tmp_path / "ours/part-00000-of-00001.arrow"))).read_all()
    metadata = {key: value for key, value in table.schema.metadata.items() if key != b"num_sequences"}
    table = table.replace_schema_metadata(metadata)
    (tmp_path / "theirs").mkdir()
    with pa.ipc.new_file(str(tmp_path / "theirs/a.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    np.testing.assert_array_equal(TokenStore.open(str(tmp_path / "theirs")).batch(range(9)), ids)


def test_the_same_ids_are_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "a", sequences(5), [])
    write(tmp_path / "b", sequences(5).astype(np.uint16), [])
    name = "part-00000-of-00001.arrow"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_absent_empty_foreign_and_mixed_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        TokenStore.open(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"holds no \.arrow file"):
        TokenStore.open(str(tmp_path))
    write(tmp_path / "mixed", sequences(4), [])
    write_token_shard(f"{tmp_path}/mixed/z.arrow", sequences(4), vocab_size=1001, eot_id=0, tokenizer="ab12")
    with pytest.raises(InputError, match=r"mixed shards.*vocab_size=1000.*vocab_size=1001"):
        TokenStore.open(str(tmp_path / "mixed"))
    (tmp_path / "torn").mkdir()
    whole = (tmp_path / "mixed/z.arrow").read_bytes()
    (tmp_path / "torn/a.arrow").write_bytes(whole[:-20])
    with pytest.raises(InputError, match="cannot be read as an Arrow file"):
        TokenStore.open(str(tmp_path / "torn"))
    (tmp_path / "foreign").mkdir()
    table = pa.table({"ids": [1, 2]})
    with pa.ipc.new_file(str(tmp_path / "foreign/a.arrow"), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match="is not a token shard"):
        TokenStore.open(str(tmp_path / "foreign"))


def test_shards_of_two_splits_are_not_one_store(tmp_path: Path) -> None:
    write(tmp_path / "split=heldout/dataset=D/source=A", sequences(4), [])
    write(tmp_path / "split=heldout/dataset=D/source=B", sequences(2), [])
    assert len(TokenStore.open(str(tmp_path))) == 6
    write(tmp_path / "split=train", sequences(3), [])
    with pytest.raises(InputError, match="has shards of split=heldout and split=train: name the folder of one split"):
        TokenStore.open(str(tmp_path))
    assert len(TokenStore.open(str(tmp_path / "split=train"))) == 3


def test_ids_outside_the_vocabulary_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 to 999"):
        write(tmp_path, np.array([[1, 1000]]), [])
    with pytest.raises(InputError, match="from -1"):
        write(tmp_path, np.array([[1, -1]]), [])
    with pytest.raises(ConfigError, match="eot_id is 1000"):
        write(tmp_path, np.array([[1, 2]]), [], eot_id=1000)
    assert list(tmp_path.iterdir()) == []


def test_an_index_past_the_end_is_an_index_error(tmp_path: Path) -> None:
    write(tmp_path, sequences(3), [])
    with pytest.raises(IndexError):
        TokenStore.open(str(tmp_path))[3]


# --- sources -------------------------------------------------------------------------------------------------------

SOURCES = (("FinPile", "News"), ("The Pile", "Wikipedia (en)"))


def test_sources_of_tokens_are_read_back(tmp_path: Path) -> None:
    ids = sequences(4)
    runs = Runs(np.array([0, 1, 0]), np.array([10, 14, 8]))
    meta = {"vocab_size": 1000, "eot_id": 999, "tokenizer": "ab12", "sources": SOURCES}
    write_token_shard(f"{tmp_path}/a.arrow", ids, runs=runs, **meta)  # type: ignore[arg-type]
    empty = Runs(np.zeros(0, np.int64), np.zeros(0, np.int64))
    write_token_shard(f"{tmp_path}/b.arrow", ids[:0], runs=empty, **meta)  # type: ignore[arg-type]
    store = TokenStore.open(str(tmp_path))
    assert store.meta.sources == SOURCES
    np.testing.assert_array_equal(store.batch(range(4)), ids)
    assert [store.runs(index) for index in (0, 1, -1)] == [
        [(SOURCES[0], 8)],
        [(SOURCES[0], 2), (SOURCES[1], 6)],
        [(SOURCES[0], 8)],
    ]
    assert store.tokens_by_source() == {SOURCES[0]: 18, SOURCES[1]: 14}


@pytest.mark.parametrize(
    ("runs", "sources"),
    [
        (None, SOURCES),
        (Runs(np.array([0]), np.array([31])), SOURCES),
        (Runs(np.array([2]), np.array([32])), SOURCES),
        (Runs(np.array([0]), np.array([32])), ()),
    ],
)
def test_runs_that_are_not_those_of_the_sequences_are_refused(
    tmp_path: Path, runs: Runs | None, sources: tuple[tuple[str, str], ...]
) -> None:
    with pytest.raises(InputError, match=r"a\.arrow: (the runs|a run)"):
        write_token_shard(
            f"{tmp_path}/a.arrow", sequences(4), vocab_size=1000, eot_id=999, tokenizer="", sources=sources, runs=runs
        )


def test_shards_with_and_without_sources_do_not_mix(tmp_path: Path) -> None:
    write(tmp_path / "x", sequences(4), [])
    runs = Runs(np.array([0]), np.array([32]))
    write_token_shard(
        f"{tmp_path}/x/z.arrow", sequences(4), vocab_size=1000, eot_id=999, tokenizer="ab12", sources=SOURCES, runs=runs
    )
    with pytest.raises(InputError, match="mixed shards"):
        TokenStore.open(f"{tmp_path}/x")
