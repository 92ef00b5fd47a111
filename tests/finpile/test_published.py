"""Documents and ledger of a build as datasets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from finpile import DOCUMENT_SCHEMA, LEDGER_SCHEMA, open_documents, open_ledger
from finpile.errors import InputError
from finpile.storage import read_json


def test_documents_and_ledger_have_all_columns_and_rows(sample_build: Path) -> None:
    stages = {stage["stage"]: stage["counts"] for stage in read_json(str(sample_build / "manifest.json"))["stages"]}
    documents, ledger = open_documents(str(sample_build)).to_table(), open_ledger(f"file://{sample_build}").to_table()
    assert set(documents.schema.names) == {*DOCUMENT_SCHEMA.names, "split"}
    assert set(ledger.schema.names) == set(LEDGER_SCHEMA.names)
    for name in ("dataset", "source"):
        assert documents.schema.field(name).type == pa.string()
    assert documents.num_rows == sum(part["documents"] for part in stages["split"]["documents"])
    assert ledger.num_rows == sum(part["rows"] for part in stages["split"]["ledger"])
    assert pc.sum(pc.equal(ledger["stage"], "exact")).as_py() == stages["exact"]["removed"]


def test_folder_without_a_build_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder; expected the output of"):
        open_documents(str(tmp_path))
    with pytest.raises(InputError, match="no such folder; nothing was removed, or this is not the output of"):
        open_ledger(str(tmp_path))
