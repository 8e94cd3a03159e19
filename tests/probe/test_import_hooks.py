"""The watch on imports: hooked once, and the module is otherwise as Python made it."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.resources
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from allaboard.probe import adapters, frameworks
from allaboard.probe.import_hooks import Watch


class Heard:
    """A watch on ``engine`` and ``engine.inner`` that notes what it is told."""

    def __init__(self, hook: Callable[[ModuleType], None] | None = None) -> None:
        self.hooked: list[str] = []
        self.said: list[tuple[str, ...]] = []

        def note(module: ModuleType) -> None:
            self.hooked.append(module.__name__)
            if hook is not None:
                hook(module)

        self.watch = Watch(
            {"engine": "engine"},
            {"engine": note, "engine.inner": note},
            lambda name: self.said.append(("importing", name)),
            lambda name, trouble: self.said.append(("imported", name, trouble)),
        )


@pytest.fixture(autouse=True)
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    package = tmp_path / "engine"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '1.0'\n")
    (package / "inner.py").write_text("def go():\n    return 1\n")
    (package / "words.txt").write_text("all aboard")
    monkeypatch.syspath_prepend(tmp_path)
    before = list(sys.meta_path)
    yield package
    sys.meta_path[:] = before
    for name in [n for n in sys.modules if n.partition(".")[0] == "engine"]:
        del sys.modules[name]


def listen(hook: Callable[[ModuleType], None] | None = None) -> Heard:
    heard = Heard(hook)
    sys.meta_path.insert(0, heard.watch)
    return heard


def test_a_module_is_hooked_once(engine: Path) -> None:
    heard = listen()
    inner = importlib.import_module("engine.inner")
    assert heard.hooked == ["engine", "engine.inner"]
    assert heard.said == [("importing", "engine"), ("imported", "engine", "")]
    importlib.reload(inner)
    importlib.import_module("engine.inner")
    assert heard.hooked == ["engine", "engine.inner"]


def test_loader_and_spec_are_left_as_they_were(engine: Path) -> None:
    listen()
    inner = importlib.import_module("engine.inner")
    assert isinstance(inner.__loader__, importlib.machinery.SourceFileLoader)
    assert vars(inner.__loader__).keys() == {"name", "path"}
    assert inner.__spec__ is not None and inner.__spec__.loader is inner.__loader__
    assert inner.__spec__.origin == inner.__file__ == str(engine / "inner.py")
    assert inner.__loader__.get_source("engine.inner") == "def go():\n    return 1\n"


def test_resources_of_a_hooked_package_are_there() -> None:
    listen()
    package = importlib.import_module("engine")
    assert importlib.resources.files(package).joinpath("words.txt").read_text() == "all aboard"


def test_a_hook_that_raises_does_not_break_the_import() -> None:
    def broken(module: ModuleType) -> None:
        raise KeyError("gone")

    heard = listen(broken)
    assert importlib.import_module("engine.inner").go() == 1
    assert ("imported", "engine.inner", "KeyError: 'gone'") in heard.said


def test_callbacks_that_raise_do_not_break_the_import() -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("gone")

    sys.meta_path.insert(0, Watch({"engine": "engine"}, {"engine": broken}, broken, broken))
    assert importlib.import_module("engine").__version__ == "1.0"


def test_asking_whether_it_is_there_does_not_use_the_hook_up() -> None:
    heard = listen()
    for _ in range(3):
        assert importlib.util.find_spec("engine") is not None
    assert heard.said == []
    importlib.import_module("engine")
    assert heard.hooked == ["engine"]


def test_a_failed_import_may_be_tried_again(engine: Path) -> None:
    heard = listen()
    (engine / "__init__.py").write_text("raise ImportError('no driver')\n")
    with pytest.raises(ImportError, match="no driver"):
        importlib.import_module("engine")
    assert heard.hooked == []
    assert heard.said[-1] == ("imported", "engine", ""), "it does not import any more"
    (engine / "__init__.py").write_text("fine = True  # longer than it was before, for the cache\n")
    importlib.invalidate_caches()
    assert importlib.import_module("engine").fine
    assert heard.hooked == ["engine"]


def test_a_module_that_is_not_there_stays_so() -> None:
    heard = listen()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("engine.absent")
    heard.watch = Watch({"absent": "absent"}, {}, lambda _: None, lambda *_: None)
    sys.meta_path.insert(0, heard.watch)
    assert importlib.util.find_spec("absent") is None


def test_a_finder_that_searches_the_whole_path_meets_no_circle() -> None:
    class Asker:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            for finder in sys.meta_path:
                if finder is not Asker:
                    finder.find_spec(name, None, None)  # type: ignore[arg-type]

    heard = listen()
    sys.meta_path.insert(1, Asker)
    importlib.import_module("engine")
    assert heard.hooked == ["engine"]


def test_other_modules_are_none_of_its_business() -> None:
    heard = listen()
    assert heard.watch.find_spec("json") is None


def test_a_framework_is_hooked_from_the_first_question_for_one_of_its_packages(
    engine: Path,
) -> None:
    hooked: list[str] = []
    loaded: list[str] = []

    def load(framework: str) -> dict[str, Callable[[ModuleType], None]]:
        loaded.append(framework)
        return {"engine.inner": lambda module: hooked.append(module.__name__)}

    (engine.parent / "engine_tools.py").write_text("import engine.inner\n")
    packages = {"engine": "engine", "engine_tools": "engine"}
    watch = Watch(packages, {}, lambda name: None, lambda name, trouble: None, load)
    sys.meta_path.insert(0, watch)
    assert importlib.util.find_spec("words") is None and loaded == []
    importlib.import_module("engine_tools")
    assert (loaded, hooked) == (["engine"], ["engine.inner"])


def test_every_hooked_module_is_in_a_package_that_loads_its_adapter() -> None:
    folder = Path(frameworks.__file__).parent
    names = [f.stem for f in folder.glob("*.py") if not f.stem.startswith("_")]
    assert sorted(names) == ["jax", "tensorflow", "torch"]
    for name in names:
        packages = importlib.import_module(f"{frameworks.__name__}.{name}").PACKAGES
        adapter = importlib.import_module(f"{adapters.__name__}.{name}")
        assert packages[0] == name
        assert {module.partition(".")[0] for module in adapter.MODULES} <= set(packages)
