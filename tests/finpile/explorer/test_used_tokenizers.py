"""The tokenizer of a build that was not trained, in the pages: its pieces, their counts, and its encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from finpile.config.tokenizer import TokenizerConfig
from finpile.errors import IntegrityError
from finpile.explorer.vocabulary import vocabulary
from finpile.output.layout import Layout, token_index
from finpile.tokens.provenance import Pieces, write_index
from finpile.tokens.store import write_token_shard
from finpile.tokens.tokenizer_files import tokenizer_checksum
from finpile.tokens.tokenizers.given import GivenTokenizer
from tests.support.other_tokenizers import TEXTS, WRITERS


@pytest.mark.parametrize(("name", "has_encoder"), [("bpe", True), ("gpt2", True), ("sentencepiece", False)])
def test_pieces_counts_and_encoder(name: str, has_encoder: bool, tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    texts = [*TEXTS, *(f"shares of the bank {at} rose" for at in range(60))]
    given = GivenTokenizer.of_config(TokenizerConfig(use=str(WRITERS[name](tmp_path / "given", texts))), "/")
    layout, record = Layout(str(tmp_path / "out")), given.record
    given.write(layout.tokenizer)
    tokenizer = given.opened()
    [ids] = tokenizer.encode(["shares of the bank rose " * 9])
    shard = np.array([*ids, record.eot_id])[-16:].reshape(1, -1)
    write_token_shard(
        f"{layout.tokens}/split=train/a.arrow",
        shard,
        vocab_size=record.vocab_size,
        eot_id=record.eot_id,
        tokenizer=tokenizer_checksum(layout),
    )
    with pytest.raises(IntegrityError, match=r"index/split=train/a\.parquet: is missing"):
        vocabulary(layout)
    path = "documents/dataset=D/source=S/part-00000-of-00001.parquet"
    one = Pieces(np.array([0]), np.array([0]), np.array([16]))
    write_index(token_index(f"{layout.tokens}/split=train/a.arrow"), one, 0, [path])
    found = vocabulary(layout)
    assert found is not None
    assert found["counts"] == np.bincount(shard.ravel(), minlength=record.vocab_size).tolist()
    used = len(np.unique(shard))
    assert found["by_source"] == [
        {"dataset": "D", "source": "S", "tokens": 16, "used": used, "only": used, "typical": []}
    ]
    assert len(found["pieces"]) == record.vocab_size
    assert found["pieces"][record.eot_id] == ""
    spelled = "".join(found["pieces"][token_id] for token_id in shard.ravel().tolist())
    assert spelled.encode("latin-1") == b"".join(tokenizer.pieces[token_id] for token_id in shard[0, :-1].tolist())
    assert (found["encoder"] is not None) == has_encoder
    assert found["log_probs"] is None
