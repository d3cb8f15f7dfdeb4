"""The jars of Spark's connectors for Kafka and S3, fetched once by Maven.

PySpark comes without them. Maven fetches them into a subfolder of
``~/.cache/tidegate/jars``, or of the folder that ``TIDEGATE_JARS`` names. A subfolder that exists
is used as it is, so on a machine without Maven or network the jars can be copied there by hand.
Delta needs no jar; see `tidegate.spark.sinks.delta` for the reason.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pyspark

from tidegate.errors import ConnectorError

MAVEN_SECONDS_MAX = 900

_SCALA = "2.13"

# Not every Maven repository has the connector of Spark 4.3.0, nor the token provider that belongs
# to the connector of 4.2.0. The connector of 4.2.0 with the token provider of 4.0.0 passes the
# tests on Spark 4.3.0 against a Kafka broker without security; delegation tokens, for which the
# provider is needed, are not tested.
_FALLBACKS = {"4.3": ("4.2.0", "4.0.0")}


# The connector for S3 depends on all of Amazon's SDK, half a gigabyte. These modules of it, at the
# version that belongs to the version of Hadoop, are what it needs.
_AMAZON_SDKS = {"3.4.1": "2.24.6", "3.4.2": "2.29.52", "3.5.0": "2.35.4"}
_SDK_MODULES = ("s3", "s3-transfer-manager", "sts")


@dataclass(frozen=True, slots=True)
class JarSet:
    """Maven artifacts, as ``group:name:version``, whose jars are kept in one folder.

    ``overrides`` are artifacts whose version replaces the one that the others depend on.
    """

    folder: str
    artifacts: tuple[str, ...]
    overrides: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    """Artifacts, as ``group:name``, that others depend on and that are left out."""


def kafka_jars() -> list[Path]:
    """The jars to list in ``spark.jars``, so that a session can read from and write to Kafka.

    Raises ConnectorError if they are not in the cache and cannot be fetched.
    """
    choices = _kafka_choices(pyspark.__version__)
    for jars in choices:
        if (cache_folder() / jars.folder).is_dir():
            return fetch_jars(jars)
    failures = []
    for jars in choices:
        try:
            return fetch_jars(jars, excluded=_artifacts_of_spark())
        except ConnectorError as error:
            failures.append(error)
    raise failures[0]


def s3_jars() -> list[Path]:
    """The jars to list in ``spark.jars``, so that a session can read and write `s3a://`.

    Raises ConnectorError if they are not in the cache and cannot be fetched.
    """
    hadoop = next(Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar"))
    version = hadoop.stem.removeprefix("hadoop-client-api-")
    connector = f"org.apache.hadoop:hadoop-aws:{version}"
    sdk = _AMAZON_SDKS.get(version)
    if sdk is None:
        jars = JarSet(f"hadoop-aws-{version}", (connector,))
    else:
        modules = (f"software.amazon.awssdk:{name}:{sdk}" for name in _SDK_MODULES)
        bundle = ("software.amazon.awssdk:bundle",)
        jars = JarSet(f"hadoop-aws-{version}", (connector, *modules), excluded=bundle)
    return fetch_jars(jars, excluded=_artifacts_of_spark())


def fetch_jars(jars: JarSet, excluded: frozenset[str] = frozenset()) -> list[Path]:
    """The jars of a set and of all its dependencies, fetched unless they are in the cache.

    ``excluded`` names artifacts to leave out. Of several processes that ask at the same time, one
    fetches and the others wait. The folder is renamed to its final name when it is complete, so a
    fetch that was killed leaves no folder that looks complete.
    """
    folder = cache_folder() / jars.folder
    if not folder.is_dir():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with _locked(folder.with_name(f".{jars.folder}.lock")):
                if not folder.is_dir():
                    _fetch(jars, excluded, folder)
        except OSError as error:
            raise ConnectorError(f"the jars of {jars.folder} cannot be stored: {error}") from error
    files = sorted(folder.glob("*.jar"))
    if not files:
        raise ConnectorError(f"{folder} has no jars; remove it, and they are fetched again")
    return files


def cache_folder() -> Path:
    """The folder that holds a subfolder for each `JarSet`."""
    configured = os.environ.get("TIDEGATE_JARS")
    return Path(configured) if configured else Path.home() / ".cache" / "tidegate" / "jars"


def _kafka_choices(version: str) -> list[JarSet]:
    """The connector of this version of Spark, then an older one that is known to work with it."""
    connector = f"org.apache.spark:spark-sql-kafka-0-10_{_SCALA}"
    choices = [JarSet(f"spark-kafka-{version}", (f"{connector}:{version}",))]
    fallback = _FALLBACKS.get(".".join(version.split(".")[:2]))
    if fallback is not None:
        older, tokens = fallback
        provider = f"org.apache.spark:spark-token-provider-kafka-0-10_{_SCALA}:{tokens}"
        choices.append(JarSet(f"spark-kafka-{older}", (f"{connector}:{older}",), (provider,)))
    return choices


def _artifacts_of_spark() -> frozenset[str]:
    """The artifacts that come with PySpark; a second version of one of them breaks a session."""
    return frozenset(map(_artifact_of, Path(pyspark.__file__).parent.glob("jars/*.jar")))


def _artifact_of(jar: Path) -> str:
    """The name of a jar's artifact, without its version.

    >>> _artifact_of(Path("scala-parallel-collections_2.13-1.2.0.jar"))
    'scala-parallel-collections_2.13'
    """
    return re.sub(r"-\d[^-]*(-[^-]+)*$", "", jar.stem)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file lock, which the system releases even if the process is killed."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(jars: JarSet, excluded: frozenset[str], folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{jars.folder}-") as scratch:
        fetched = Path(scratch) / "jars"
        fetched.mkdir()
        (Path(scratch) / "pom.xml").write_text(_pom(jars), encoding="utf-8")
        _run_maven(jars, Path(scratch), fetched, folder)
        for jar in fetched.glob("*.jar"):
            if _artifact_of(jar) in excluded:
                jar.unlink()
        fetched.rename(folder)


def _run_maven(jars: JarSet, project: Path, target: Path, folder: Path) -> None:
    wanted = ", ".join(jars.artifacts)
    by_hand = f"or copy the jar and its dependencies to {folder}"
    maven = shutil.which("mvn")
    if maven is None:
        raise ConnectorError(
            f"{wanted} is needed, and there is no Maven ('mvn') to fetch it; "
            f"install Maven, {by_hand}"
        )
    command = [maven, "--quiet", "--batch-mode", "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
    try:
        done = subprocess.run(
            command,
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=MAVEN_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConnectorError(
            f"Maven did not fetch {wanted} in {MAVEN_SECONDS_MAX} seconds; try again, {by_hand}"
        ) from None
    if done.returncode != 0:
        raise ConnectorError(
            f"Maven cannot fetch {wanted}: {_maven_error(done.stdout + done.stderr)}; "
            f"check that the Maven repository is reachable and has it, {by_hand}"
        )


def _maven_error(output: bytes) -> str:
    """The first error message in Maven's output."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output.decode(errors="replace"))
    lines = [line.removeprefix("[ERROR] ") for line in text.splitlines() if "[ERROR]" in line]
    first = lines[0] if lines else text.strip().splitlines()[-1] if text.strip() else "no message"
    return first.split(" -> [Help")[0].strip()


def _pom(jars: JarSet) -> str:
    """A Maven project whose dependencies are the artifacts of the set.

    Spark's own project file names a mirror that not every network can reach, and Maven asks it
    first. So this project disables it by a repository with the same id.
    """
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tidegate</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <repositories>
    <repository>
      <id>gcs-maven-central-mirror</id>
      <url>file:///dev/null</url>
      <releases><enabled>false</enabled></releases>
      <snapshots><enabled>false</enabled></snapshots>
    </repository>
  </repositories>
  <dependencyManagement>
    <dependencies>{_dependencies(jars.overrides)}</dependencies>
  </dependencyManagement>
  <dependencies>{_dependencies(jars.artifacts, jars.excluded)}</dependencies>
</project>
"""


def _dependencies(artifacts: Sequence[str], excluded: Sequence[str] = ()) -> str:
    exclusions = ""
    for each in excluded:
        group, name = map(escape, each.split(":"))
        exclusions += (
            f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>"
        )
    parts = []
    for artifact in artifacts:
        group, name, version = map(escape, artifact.split(":"))
        parts.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version><exclusions>{exclusions}</exclusions></dependency>"
        )
    return "".join(parts)
