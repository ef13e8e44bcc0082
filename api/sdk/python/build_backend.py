"""Builds the wheel and the sdist of pyproject.toml, with nothing but Python's standard library (PEP 517), and the same bytes each time."""

import base64
import gzip
import hashlib
import io
import tarfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
STEM = f"{PROJECT['name']}-{PROJECT['version']}"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in _sources()}
    info = f"{STEM}.dist-info"
    files[f"{info}/METADATA"] = _metadata()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: ddq\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if _licence().exists():
        files[f"{info}/LICENSE"] = _licence().read_bytes()
    record = "".join(f"{name},sha256={_hash(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    name = f"{STEM}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def build_sdist(sdist_directory, config_settings=None):
    files = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in [*_sources(), HERE / "pyproject.toml", HERE / "build_backend.py", HERE / "README.md"]}
    files["PKG-INFO"] = _metadata()
    if _licence().exists():
        files["LICENSE"] = _licence().read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{STEM}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    name = f"{STEM}.tar.gz"
    Path(sdist_directory, name).write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return name


def _sources():
    return sorted([*HERE.glob("ddq/*.py"), HERE / "ddq/py.typed"])


def _licence():
    """The licence of the repository, or of the sdist that this is part of."""
    own = HERE / "LICENSE"
    return own if own.exists() else HERE.parents[2] / "LICENSE"


def _metadata():
    head = {
        "Metadata-Version": "2.1",
        "Name": PROJECT["name"],
        "Version": PROJECT["version"],
        "Summary": PROJECT["description"],
        "License": PROJECT["license"]["text"],
        "Project-URL": f"Source, {PROJECT['urls']['Source']}",
        "Requires-Python": PROJECT["requires-python"],
        "Description-Content-Type": "text/markdown",
    }
    lines = "".join(f"{name}: {value}\n" for name, value in head.items())
    return (lines + "\n" + (HERE / "README.md").read_text()).encode()


def _hash(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
