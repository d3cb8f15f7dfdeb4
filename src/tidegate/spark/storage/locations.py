"""Locations as users write them: a path, or a URI that Tidegate and Spark read alike.

| written | means |
|---|---|
| `a/b`, `/a/b` | a path of the system, relative to the working folder of the driver |
| `file:/a/b`, `file:///a/b` | the same |
| `s3://bucket/a`, `s3a://bucket/a` | an S3 bucket |
| `gs://bucket/a` | a bucket of Google |
| `abfss://container@account.dfs.core.windows.net/a` | a container of Azure |
| `hdfs://host:port/a` | HDFS |

A path without a scheme is never one of Spark's default file system, so it means one place wherever
it is read. Everything else is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidegate.errors import ConnectorError
from tidegate.spark.storage.folder import Folder
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.storage.remote_folder import Options, RemoteFolder

Credentials = Mapping[str, str]
"""Settings of Spark for its file systems, by name without the prefix ``spark.hadoop.``."""

_SCHEMES = ("file", "s3", "s3a", "gs", "abfss", "hdfs")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")

_S3_SETTINGS = {
    "fs.s3a.access.key": "access_key",
    "fs.s3a.secret.key": "secret_key",
    "fs.s3a.session.token": "session_token",
    "fs.s3a.endpoint": "endpoint_override",
    "fs.s3a.endpoint.region": "region",
}
"""The arguments of Arrow's file system for settings of Spark."""
_S3_OTHERS = ("fs.s3a.path.style.access", "fs.s3a.connection.ssl.enabled")
_REGION = "us-east-1"
"""Servers that are not Amazon's take any region; without one Arrow asks Amazon for it."""


def credentials_of(spark: SparkSession) -> Credentials:
    """The settings of a session that concern file systems, as far as sessions tell them."""
    found = {name: _setting(spark, name) for name in (*_S3_SETTINGS, *_S3_OTHERS)}
    return {name: value for name, value in found.items() if value}


def _setting(spark: SparkSession, name: str) -> str | None:
    # Given as a default of None, an unset name is no error.
    return spark.conf.get(f"spark.hadoop.{name}", None) or spark.conf.get(name, None)


def scheme_of(location: str) -> str:
    """The scheme of a location, `file` where it has none; raises ConnectorError for an unknown one.

    >>> scheme_of("s3a://bucket/a"), scheme_of("a/b")
    ('s3a', 'file')
    """
    found = _SCHEME.match(location)
    if found is None:
        return "file"
    scheme = found[1].lower()
    if scheme not in _SCHEMES:
        raise ConnectorError(
            f"{location}: there is no storage {scheme!r}; there are paths and "
            f"{', '.join(f'{name}://' for name in _SCHEMES)}"
        )
    return scheme


def is_uri(location: str) -> bool:
    """Whether a location has a scheme, so that it is relative to nothing."""
    return _SCHEME.match(location) is not None


def spark_location(location: str) -> str:
    """The URI that Spark reads for a location; one that only Spark knows stays as it is."""
    found = _SCHEME.match(location)
    if found is None or found[1].lower() == "file":
        return LocalFolder(_system_path(location)).spark_path
    if found[1].lower() == "s3":
        return f"s3a{location[found.end(1) :]}"
    return location


def local_path(location: str, purpose: str) -> Path:
    """The path of a location that must be a local or mounted folder or file.

    ``purpose`` says in a message what needs it.
    """
    if scheme_of(location) != "file":
        raise ConnectorError(
            f"{purpose} must be in a local or mounted folder, which {location!r} is not"
        )
    return _system_path(location)


def _system_path(location: str) -> Path:
    found = _SCHEME.match(location)
    path = location if found is None else location[found.end() :]
    if found is not None and path.startswith("//"):
        authority, _, rest = path[2:].partition("/")
        if authority not in ("", "localhost"):
            raise ConnectorError(
                f"{location}: the path of another machine, {authority}; write file:///path for one "
                "that all machines see"
            )
        path = f"/{rest}"
    return Path(os.path.abspath(path))


def folder_at(location: str | Path, credentials: Credentials) -> Folder:
    """The folder at a location; raises ConnectorError if there is no such storage."""
    text = str(location)
    scheme = scheme_of(text)
    if scheme == "file":
        return LocalFolder(_system_path(text))
    authority, slash, path = text.partition("://")[2].rstrip("/").partition("/")
    if not authority:
        noun = "server" if scheme == "hdfs" else "bucket"
        raise ConnectorError(f"{text}: the name of the {noun} is missing")
    if scheme == "hdfs":
        return RemoteFolder("hdfs", f"hdfs://{authority}", "", slash + path)
    if scheme == "abfss":
        container, at, host = authority.partition("@")
        if not at:
            raise ConnectorError(
                f"{text}: write abfss://<container>@<account>.dfs.core.windows.net/<path>"
            )
        account: Options = (("account_name", host.partition(".")[0]),)
        return RemoteFolder("abfss", f"abfss://{authority}/", f"{container}/", path, account)
    if scheme == "gs":
        return RemoteFolder("gs", "gs://", "", authority + slash + path)
    # Hadoop's connector for S3 has the scheme s3a; that of s3 was removed.
    return RemoteFolder("s3", "s3a://", "", authority + slash + path, _s3_options(credentials))


def _s3_options(credentials: Credentials) -> Options:
    """The arguments of Arrow's file system; without keys it looks for them as Amazon's tools do."""
    given: dict[str, Any] = {
        argument: credentials[name]
        for name, argument in _S3_SETTINGS.items()
        if name in credentials
    }
    if "endpoint_override" in given:
        given.setdefault("region", _REGION)
        given["force_virtual_addressing"] = credentials.get("fs.s3a.path.style.access") == "false"
        if "://" not in given["endpoint_override"]:
            encrypted = credentials.get("fs.s3a.connection.ssl.enabled", "true") == "true"
            given["scheme"] = "https" if encrypted else "http"
    return tuple(sorted(given.items()))
