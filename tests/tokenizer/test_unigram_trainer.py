"""The whole trainer: against the reference implementation and SentencePiece, determinism, and checkpoints."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from finpile_tokenizer import PretokenCounts, TokenizerError, UnigramModel, UnigramTrainer, count_pretokens
from finpile_tokenizer.arrays.buffers import Float64s
from finpile_tokenizer.model import log_normalized
from finpile_tokenizer.trainer import HEADROOM, NUM_SUB_ITERATIONS, SHRINKING_FACTOR, finalize
from finpile_tokenizer.training import lattice, seed
from finpile_tokenizer.training.em import expectation, scale_for
from finpile_tokenizer.training.lattice import find_lattices
from finpile_tokenizer.training.seed import find_seeds
from finpile_tokenizer.training.state import TrainingState
from finpile_tokenizer.training.text import InMemoryText

from tests.support.pretokens import counts_of
from tests.support.references import unigram as reference

_DRAW = random.Random(3)
WORDS = [bytes(_DRAW.choices(b"abcde \x00", k=_DRAW.randrange(2, 8))) for _ in range(60)]
TEXTS = [b" ".join(_DRAW.choices(WORDS, k=30)) + b"\xff\xfe12." for _ in range(80)]
SETTINGS = {"vocab_size": 120, "max_piece_bytes": 10, "seed_size": 1_500}


class Interrupted(Exception):
    """Raised by a listener to interrupt the training."""


@pytest.fixture(autouse=True, scope="module")
def _short_ranges() -> Iterator[None]:
    """Sets short ranges of work, so that threads share small texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seed, "_RANGE_POSITIONS", 512)
        patch.setattr(lattice, "_BLOCK_BYTES", 256)
        yield


def counted(texts: list[bytes] = TEXTS) -> PretokenCounts:
    return count_pretokens(pa.array(texts, pa.large_binary()))


def as_dict(model: UnigramModel) -> dict[bytes, float]:
    return dict(zip(model.pieces.to_pylist(), model.log_probs.tolist(), strict=True))


def pieces_of(state: TrainingState) -> dict[bytes, float]:
    return dict(zip(state.pieces.take(pa.array(state.numbers)).to_pylist(), state.log_probs.tolist(), strict=True))


def table_bytes(model: UnigramModel) -> bytes:
    """All fields of a model as bytes, so that models compare bit for bit."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, model.to_table().schema) as writer:
        writer.write_table(model.to_table().combine_chunks())
    return sink.getvalue().to_pybytes()


def states_of(trainer: UnigramTrainer, counts: PretokenCounts) -> tuple[UnigramModel, list[TrainingState]]:
    states: list[TrainingState] = []
    return trainer.train(counts, listen=states.append), states


def stopping_after(num_steps: int) -> Callable[[TrainingState], None]:
    """A listener that interrupts the training at that step."""
    steps = itertools.count(1)

    def listen(state: TrainingState) -> None:
        del state
        if next(steps) == num_steps:
            raise Interrupted

    return listen


def drawn_counts(number: int) -> dict[bytes, int]:
    """Short pretokens with distinct frequencies, so that no two pieces are equally good by chance."""
    draw = random.Random(number)
    stems = [bytes(draw.choices(b"abc\x00\xff ", k=draw.randrange(1, 4))) for _ in range(6)]
    return {b"".join(draw.choices(stems, k=3))[:8]: draw.randrange(1, 5_000) for _ in range(14)}


@pytest.mark.parametrize("number", range(8))
def test_the_trainer_equals_a_slow_reference(number: int) -> None:
    frequencies = dict(sorted(drawn_counts(number).items()))
    trainer = UnigramTrainer(vocab_size=14, max_piece_bytes=5, seed_size=60)
    model = trainer.train(counts_of(frequencies))
    expected = reference.train(frequencies, trainer.vocab_size, trainer.max_piece_bytes, trainer.seed_size)
    assert as_dict(model) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("vocab_size", [14, 40, 150, 100_000])
def test_a_model_is_a_distribution_over_the_bytes_and_pieces_of_pretokens(vocab_size: int) -> None:
    counts = counted()
    model, states = states_of(UnigramTrainer(vocab_size=vocab_size, max_piece_bytes=9), counts)
    pieces = model.pieces.to_pylist()
    assert pieces == sorted(set(pieces))
    assert len(pieces) == (vocab_size if vocab_size <= 150 else states[-1].num_pieces)
    assert {bytes([value]) for value in b"".join(TEXTS)} == {piece for piece in pieces if len(piece) == 1}
    assert max(map(len, pieces)) <= 9
    assert all(any(piece in pretoken for pretoken in counts.pretokens.to_pylist()) for piece in pieces)
    assert math.fsum(np.exp(model.log_probs)) == pytest.approx(1.0, abs=1e-12)
    assert (model.num_models == 1).all()
    assert model.num_bytes == counts.num_bytes


def test_a_model_has_the_most_probable_pieces_of_the_last_state() -> None:
    model, states = states_of(UnigramTrainer(**SETTINGS), counted())
    last = states[-1]
    assert last.num_pieces > SETTINGS["vocab_size"]
    found = pieces_of(last)
    kept = sorted(found, key=lambda piece: (len(piece) > 1, -found[piece]))[: SETTINGS["vocab_size"]]
    assert set(as_dict(model)) == set(kept)
    shifts = {round(as_dict(model)[piece] - found[piece], 9) for piece in kept}
    assert len(shifts) == 1


def test_training_keeps_to_its_schedule() -> None:
    _, states = states_of(UnigramTrainer(**SETTINGS), counted())
    wanted = int(HEADROOM * SETTINGS["vocab_size"])
    rounds = [list(group) for _, group in itertools.groupby(states[:-2], lambda state: state.num_updates == 0)]
    assert [state.num_updates for state in states] == [1, 2, *[0, 1, 2] * ((len(states) - 2) // 3)]
    assert len(rounds) > 4
    for before, after in itertools.pairwise(states):
        assert set(after.numbers.tolist()) <= set(before.numbers.tolist())
        if after.num_updates == 0:
            assert before.num_updates == NUM_SUB_ITERATIONS
            assert wanted < before.num_pieces
            assert after.num_pieces <= max(wanted, int(SHRINKING_FACTOR * before.num_pieces))
    assert states[-1].num_pieces <= wanted


def test_the_objective_is_the_code_length_before_each_update() -> None:
    counts = counted()
    model, states = states_of(UnigramTrainer(**SETTINGS), counts)
    seeds = find_seeds(counts, max_piece_bytes=10, seed_size=1_500)
    befores = [TrainingState.first(seeds.pieces, seeds.scores), *states[:-1]]
    measured = []
    for before, after in zip(befores, states, strict=True):
        if after.num_updates > 0:
            lattices = find_lattices(counts, before.pieces.take(pa.array(before.numbers)))
            found = expectation(lattices, before.log_probs, scale=scale_for(counts.num_bytes))
            measured.append(found.bits_per_byte)
    assert list(model.objective) == pytest.approx(measured, rel=1e-12)
    assert model.objective == states[-1].objective


def test_models_do_not_depend_on_the_order_of_pieces_in_memory() -> None:
    counts = counted()
    alone = table_bytes(UnigramTrainer(**SETTINGS).train(counts))
    seeds = find_seeds(counts, max_piece_bytes=10, seed_size=1_500)
    first = TrainingState.first(seeds.pieces, seeds.scores)
    for order in (np.arange(len(seeds.pieces)), np.random.default_rng(1).permutation(len(seeds.pieces))):
        lattices = find_lattices(counts, seeds.pieces)
        text = InMemoryText(lattices, seeds.places, order)
        (model,) = UnigramTrainer(**SETTINGS).models_along(text, first, [120])
        assert table_bytes(model) == alone


def test_models_do_not_depend_on_the_number_of_threads() -> None:
    alone = UnigramTrainer(**SETTINGS).train(counted())
    for num_threads in (2, 3):
        assert table_bytes(UnigramTrainer(**SETTINGS, num_threads=num_threads).train(counted())) == table_bytes(alone)


def test_models_do_not_depend_on_order_and_split_of_texts() -> None:
    expected = table_bytes(UnigramTrainer(**SETTINGS).train(counted()))
    shuffled = random.Random(1).sample(TEXTS, len(TEXTS))
    assert table_bytes(UnigramTrainer(**SETTINGS).train(counted(shuffled))) == expected
    merged = counted(shuffled[:7]).merge([counted(shuffled[7:50]), counted(shuffled[50:])])
    assert table_bytes(UnigramTrainer(**SETTINGS).train(merged)) == expected


def test_a_slice_of_counts_trains_as_a_copy_of_it() -> None:
    counts = counted()
    sliced = PretokenCounts(pretokens=counts.pretokens[20:60], frequencies=counts.frequencies[20:60])
    copied = PretokenCounts(
        pretokens=pa.array(sliced.pretokens.to_pylist(), pa.large_binary()), frequencies=sliced.frequencies.copy()
    )
    assert table_bytes(UnigramTrainer(**SETTINGS).train(sliced)) == table_bytes(
        UnigramTrainer(**SETTINGS).train(copied)
    )


def test_the_largest_of_several_sizes_is_that_trained_alone() -> None:
    sizes = [60, 300, 120, 60]
    models = list(UnigramTrainer(**SETTINGS).train_sizes(counted(), sizes))
    assert [len(model.pieces) for model in models] == [300, 120, 60]
    alone = UnigramTrainer(**{**SETTINGS, "vocab_size": 300}).train(counted())
    assert table_bytes(models[0]) == table_bytes(alone)
    assert all(len(small.objective) > len(large.objective) for large, small in itertools.pairwise(models))


def test_no_sizes_are_refused() -> None:
    with pytest.raises(TokenizerError, match="size"):
        UnigramTrainer(**SETTINGS).train_sizes(counted(), [])


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_training_interrupted_at_any_step_resumes_to_the_same_bytes(num_threads: int, tmp_path: Path) -> None:
    trainer = UnigramTrainer(**SETTINGS)
    model, states = states_of(trainer, counted())
    for num_steps in range(1, len(states) + 1):
        checkpoint = tmp_path / f"{num_steps}.parquet"
        with pytest.raises(Interrupted):
            trainer.train(counted(), listen=stopping_after(num_steps), checkpoint=checkpoint)
        heard: list[TrainingState] = []
        again = UnigramTrainer(**SETTINGS, num_threads=num_threads)
        resumed = again.train(counted(), listen=heard.append, checkpoint=checkpoint)
        assert table_bytes(resumed) == table_bytes(model), num_steps
        assert len(heard) == len(states) - num_steps


@pytest.mark.parametrize(
    "change",
    [{"vocab_size": 121}, {"max_piece_bytes": 11}, {"seed_size": 1_499}, {"texts": TEXTS[1:]}, {"texts": TEXTS * 2}],
)
def test_a_checkpoint_of_another_training_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    checkpoint = tmp_path / "state.parquet"
    with pytest.raises(Interrupted):
        UnigramTrainer(**SETTINGS).train(counted(), listen=stopping_after(2), checkpoint=checkpoint)
    texts = change.pop("texts", TEXTS)
    with pytest.raises(TokenizerError, match=r"state\.parquet: is not of this text with these settings"):
        UnigramTrainer(**{**SETTINGS, **change}).train(counted(texts), checkpoint=checkpoint)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all, but bytes of another file"])
def test_a_file_that_is_no_checkpoint_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "state.parquet").write_bytes(content)
    with pytest.raises(TokenizerError, match=r"state\.parquet"):
        UnigramTrainer(**SETTINGS).train(counted(), checkpoint=tmp_path / "state.parquet")


def test_a_table_of_another_schema_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"number": [1]}), tmp_path / "state.parquet")
    with pytest.raises(TokenizerError, match=r"state\.parquet"):
        UnigramTrainer(**SETTINGS).train(counted(), checkpoint=tmp_path / "state.parquet")


def test_a_checkpoint_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="missing"):
        # The error is raised before any step: a step would fail with another error.
        UnigramTrainer(**SETTINGS).train(
            counted(), checkpoint=tmp_path / "missing" / "state.parquet", listen=lambda state: pytest.fail("a step")
        )


def a_checkpoint(path: Path) -> tuple[bytes, UnigramModel]:
    """The last checkpoint of a training, and the resulting model."""
    trainer = UnigramTrainer(**SETTINGS)
    model = trainer.train(counted(), checkpoint=path)
    return path.read_bytes(), model


def test_a_checkpoint_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.parquet"
    content, _ = a_checkpoint(path)
    for length in range(0, len(content), 211):
        path.write_bytes(content[:length])
        with pytest.raises(TokenizerError, match=r"state\.parquet"):
            UnigramTrainer(**SETTINGS).train(counted(), checkpoint=path)


def test_a_damaged_checkpoint_is_refused_or_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "state.parquet"
    content, model = a_checkpoint(path)
    unharmed = table_bytes(model)

    def outcome(position: int) -> str:
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        try:
            resumed = UnigramTrainer(**SETTINGS).train(counted(), checkpoint=path)
        except Exception as error:
            return type(error).__name__
        return "unharmed" if table_bytes(resumed) == unharmed else "another model"

    outcomes = Counter(outcome(position) for position in range(0, len(content), 41))
    assert set(outcomes) <= {"TokenizerError", "unharmed"}, outcomes


def each_byte_alone(counts: PretokenCounts) -> PretokenCounts:
    """The counts plus each byte as a separate pretoken, so that SentencePiece keeps all bytes, like our trainer."""
    values = [bytes([value]) for value in counts.distinct_bytes()]
    alone = PretokenCounts(pretokens=pa.array(values, pa.large_binary()), frequencies=np.full(len(values), 20))
    return counts.merge([alone])


def seed_frequencies(counts: PretokenCounts, max_piece_bytes: int) -> dict[bytes, int]:
    seeds = find_seeds(counts, max_piece_bytes=max_piece_bytes)
    scores = zip(seeds.pieces.to_pylist(), seeds.scores.astype(np.int64).tolist(), strict=True)
    return {piece: score // len(piece) for piece, score in scores if len(piece) > 1}


def bits_per_byte(counts: PretokenCounts, pieces: list[bytes], log_probs: Float64s) -> float:
    lattices = find_lattices(counts, pa.array(pieces, pa.large_binary()))
    return expectation(lattices, log_normalized(log_probs), scale=scale_for(counts.num_bytes)).bits_per_byte


def compare_with_sentencepiece(
    peer: ModuleType, counts: PretokenCounts, vocab_size: int, tie: float = 1e-3
) -> tuple[int, Float64s]:
    """The number of pieces in only one of the models, and the differences of the common pieces' log probabilities.

    SentencePiece starts from our seeds. It stops at the last pruning, after which our trainer runs two more updates, so
    our pieces are taken at that point. Pieces whose log probability is within `tie` of the least chosen one are equal.
    """
    _, states = states_of(UnigramTrainer(vocab_size=vocab_size, max_piece_bytes=16), counts)
    pruned = [state for state in states if state.num_updates == 0][-1]
    ours = pieces_of(pruned)
    chosen = set(finalize(pruned, vocab_size, counts.num_bytes).pieces.to_pylist())
    pieces, log_probs = peer.train(counts, vocab_size, 16, 1, seeds=seed_frequencies(counts, 16))
    least = min(ours[piece] for piece in chosen if len(piece) > 1)
    ties = {piece for piece, score in ours.items() if abs(score - least) <= tie}
    theirs = dict(zip(pieces, log_probs.tolist(), strict=True))
    apart = [abs(score - ours[piece]) for piece, score in theirs.items() if piece in chosen]
    return len((chosen ^ theirs.keys()) - ties), np.array(apart)


def test_sentencepiece_gives_the_same_model(
    sentencepiece_peer: ModuleType, real_text: Callable[[int], list[bytes]]
) -> None:
    # The measured difference of log probabilities is at most 7e-5: SentencePiece adds in float32.
    num_different, apart = compare_with_sentencepiece(
        sentencepiece_peer, each_byte_alone(counted(real_text(120_000))), 1_000
    )
    assert num_different == 0
    assert apart.max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("vocab_size", [4_000, 8_000])
def test_sentencepiece_gives_nearly_the_same_model_on_more_text(
    vocab_size: int, sentencepiece_peer: ModuleType, real_text: Callable[[int], list[bytes]]
) -> None:
    # SentencePiece's float32 sums select a few other pieces in some prunings, which changes the probabilities of their
    # parts. Measured: 11 and 3 pieces, and 1.2e-2 and 1.2e-3 for 99 of 100 log probabilities.
    num_different, apart = compare_with_sentencepiece(
        sentencepiece_peer, each_byte_alone(counted(real_text(1_500_000))), vocab_size
    )
    assert num_different <= vocab_size / 200
    assert np.median(apart) < 1e-3
    assert np.quantile(apart, 0.99) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "least_shared"), [("ours", 0.9), ("its own", 0.2)])
def test_a_model_is_no_worse_than_that_of_sentencepiece(
    seeds: str, least_shared: float, sentencepiece_peer: ModuleType, real_text: Callable[[int], list[bytes]]
) -> None:
    # SentencePiece's own seeds ignore the frequency of a pretoken, so most of its pieces differ.
    counts = counted(real_text(1_500_000))
    model = UnigramTrainer(vocab_size=4_000, max_piece_bytes=16).train(counts)
    given = seed_frequencies(counts, 16) if seeds == "ours" else None
    pieces, log_probs = sentencepiece_peer.train(counts, 4_000, 16, 1, seeds=given)
    ours = set(model.pieces.to_pylist())
    assert len(pieces) == len(ours) == 4_000
    assert len(ours & set(pieces)) / len(ours | set(pieces)) > least_shared
    assert bits_per_byte(counts, list(as_dict(model)), model.log_probs) < bits_per_byte(counts, pieces, log_probs)
