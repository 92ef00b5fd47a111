"""The readers that people have of a Delta table, each to the rows of a version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

Rows = list[dict[str, Any]]
Read = Callable[[str, int | None, Mapping[str, str]], Rows]


def _table(table: str, version: int | None, options: Mapping[str, str]) -> DeltaTable:
    return DeltaTable(table, version=version, storage_options=dict(options) or None)


def _by_sql(table: str, version: int | None, options: Mapping[str, str]) -> Rows:
    found = QueryBuilder().register("t", _table(table, version, options)).execute("select * from t").read_all()
    return list(pa.table(found).to_pylist())


def _by_duckdb(table: str, version: int | None, options: Mapping[str, str]) -> Rows:
    """DuckDB's own extension is a download, which tests do not make: it queries the dataset of deltalake."""
    return list(duckdb.from_arrow(_table(table, version, options).to_pyarrow_dataset()).to_arrow_table().to_pylist())


READERS: dict[str, Read] = {
    "pyarrow": lambda *table: _table(*table).to_pyarrow_dataset().to_table().to_pylist(),
    "pandas": lambda *table: _table(*table).to_pandas().to_dict("records"),
    "deltalake": _by_sql,
    "polars": lambda table, version, options: (
        pl.scan_delta(table, version=version, storage_options=dict(options) or None).collect().to_dicts()
    ),
    "duckdb": _by_duckdb,
}
