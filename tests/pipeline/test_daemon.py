"""Workers load the installed pyspark instead of its zip, if both are the same."""

from __future__ import annotations

from pathlib import Path

from fishweir.pipeline.spark.daemon import without_zip


def test_the_zip_of_the_installed_package_is_left_out(tmp_path: Path) -> None:
    own = str(tmp_path / "site-packages" / "pyspark" / "python" / "lib" / "pyspark.zip")
    other = str(tmp_path / "spark" / "python" / "lib" / "pyspark.zip")
    installed = str(tmp_path / "site-packages")
    assert without_zip([own, other, installed]) == [other, installed]
    assert without_zip([own, "somewhere"]) == [own, "somewhere"]
    assert without_zip(["pyspark.zip", installed]) == ["pyspark.zip", installed]
