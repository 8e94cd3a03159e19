"""An interpreter with allaboard as a wheel installs it, for the tests of ALLABOARD=1."""

from __future__ import annotations

import sys
import sysconfig
import venv
from pathlib import Path

import allaboard


def make_installed_python(folder: Path) -> str:
    """Make an environment in this folder whose site-packages has what a wheel puts there; return its
    interpreter."""
    venv.create(folder)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = folder / "lib" / version / "site-packages"
    home = Path(allaboard.__file__).parents[1]
    # Ours first, then every place where the frameworks are.
    places = [str(home), sysconfig.get_path("purelib"), *(p for p in sys.path if "-packages" in p)]
    (site / "a.pth").write_text("\n".join(dict.fromkeys(places)) + "\n")
    pth = Path(__file__).parents[1] / "src" / "allaboard.pth"
    (site / "allaboard.pth").write_text(pth.read_text())
    return str(folder / "bin" / "python")
