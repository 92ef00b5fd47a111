"""The readers that people have of a folder of Parquet files, each with its default options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq

Rows = list[dict[str, Any]]

#: A folder to its rows. Each gives the columns of the folders' names besides those of the files.
READERS: dict[str, Callable[[Path], Rows]] = {
    "pyarrow.dataset": lambda folder: ds.dataset(folder, partitioning="hive").to_table().to_pylist(),
    "pyarrow.parquet": lambda folder: pq.read_table(folder).to_pylist(),
    "pandas": lambda folder: pd.read_parquet(folder).to_dict("records"),
    "polars, folder": lambda folder: pl.read_parquet(folder).to_dicts(),
    "polars, pattern": lambda folder: (
        pl.scan_parquet(folder / "**" / "*.parquet", hive_partitioning=True).collect().to_dicts()
    ),
    "duckdb": lambda folder: duckdb.sql(f"select * from '{folder}/**/*.parquet'").to_arrow_table().to_pylist(),
    "datasets": lambda folder: datasets.Dataset(ds.dataset(folder, partitioning="hive").to_table()).to_list(),
}
