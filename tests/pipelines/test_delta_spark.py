"""Spark with `delta-spark` reads every version of the tables. Needs pyspark, Java, and the jars, which Maven has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.delta_corpus import TABLES, expected, plain, steps

JAR = "io.delta:delta-spark_2.13:4.0.0"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[1]").appName("finpile")
    settings = {
        "spark.jars.packages": JAR,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.enabled": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.slow
def test_spark_has_every_version(spark: Any, tmp_path: Path) -> None:
    out, moments = tmp_path / "out", []
    for _ in steps(tmp_path / "files", str(out)):
        time.sleep(1.1)  # moments of Spark are in seconds
        moments.append(datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"))
        time.sleep(1.1)

    def rows(table: str, **options: Any) -> list[str]:
        found = spark.read.format("delta").options(**options).load(str(out / "delta" / table))
        names = [name for name, kind in found.dtypes if kind == "timestamp"]
        with_text = found.selectExpr(*(f"cast({n} as long) as {n}" if n in names else f"`{n}`" for n in found.columns))
        return plain([row.asDict() for row in with_text.collect()])

    for table in TABLES:
        for number, moment in enumerate(moments):
            assert rows(table, versionAsOf=number) == expected(out, number)[table], (table, number)
            if number < len(moments) - 1:  # Spark refuses moments after the last commit
                assert rows(table, timestampAsOf=moment) == expected(out, number)[table], (table, moment)
        assert rows(table) == expected(out, 3)[table]
    history = spark.sql(f"describe history delta.`{out}/delta/documents`").select("version", "operation").collect()
    assert [(row.version, row.operation) for row in history] == [
        (3, "REMOVE"),
        (2, "APPEND"),
        (1, "APPEND"),
        (0, "BUILD"),
    ]
