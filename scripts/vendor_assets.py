"""Fetches the files that the web page takes from npm packages: vendor_assets.py [--check].

Each package is packed by npm in the version that the table names, and its listed files are copied to
src/allaboard/faces/web/assets/vendor, with its licence and a line of `VENDORED` (version, checksum of the
archive). With --check nothing is fetched: it fails if a file is missing or is not as it was fetched.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VENDOR = Path(__file__).parents[1] / "src/allaboard/faces/web/assets/vendor"
RECORD = VENDOR / "VENDORED.json"
PACKAGES = {
    "uplot@1.6.32": {
        "package/dist/uPlot.esm.js": "uPlot.esm.js",
        "package/dist/uPlot.min.css": "uPlot.min.css",
        "package/LICENSE": "uPlot.LICENSE",
    }
}


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fetch(package: str, names: dict[str, str]) -> dict[str, str]:
    """Copy the files of a package; return their checksums."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", "--silent", "--ignore-scripts", package],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        archive = Path(folder) / packed.stdout.split()[-1]
        checksums = {}
        with tarfile.open(archive) as tar:
            for member, name in names.items():
                file = tar.extractfile(member)
                assert file is not None, f"{package} has no {member}"
                content = file.read()
                (VENDOR / name).write_bytes(content)
                checksums[name] = checksum(content)
        return checksums


def differences() -> list[str]:
    """Return the files that are not as they were fetched."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    wrong = [package for package in PACKAGES if package not in record]
    for checksums in record.values():
        for name, expected in checksums.items():
            path = VENDOR / name
            if not path.exists() or checksum(path.read_bytes()) != expected:
                wrong.append(name)
    return wrong


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        wrong = differences()
        if wrong:
            print("not as fetched:", *wrong, "\nrun: python scripts/vendor_assets.py")
        return 1 if wrong else 0
    VENDOR.mkdir(parents=True, exist_ok=True)
    record = {package: fetch(package, names) for package, names in PACKAGES.items()}
    RECORD.write_text(json.dumps(record, indent=2) + "\n")
    print(f"{sum(map(len, record.values()))} files in {VENDOR}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
