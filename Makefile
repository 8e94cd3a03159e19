# Everything a newcomer needs: make demo, make test. Needs Python 3.11 or newer, make, a package index.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints-ci.txt
FRAMEWORKS := $(VENV)/.frameworks
# Else each of the thousands of processes that tests start would compile allaboard anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-long check docs clean
help:
	@echo "make demo       train for real, then see two faults named (under 6 minutes, no root)"
	@echo "make test       every test; makes what it needs"
	@echo "make test-long  the long ones too: every drill, 20 healthy starts of each example, fuzzing"
	@echo "make check      format, lint, types, generated pages, tests"
	@echo "make docs       write the generated pages anew"

# tf_keras asks for the full tensorflow; tensorflow-cpu serves as well, so it is installed alone.
$(FRAMEWORKS): pyproject.toml constraints-ci.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[torch,tensorflow,jax,examples,etcd,test]'
	$(PIP) --no-deps tf_keras
	@touch $@

demo: $(FRAMEWORKS)
	@$(BIN)/python scripts/demo.py

test: $(FRAMEWORKS)
	$(BIN)/python -m pytest -n 3 --dist worksteal --ignore tests/zoo
	scripts/zoo

test-long: $(FRAMEWORKS)
	$(PIP) -e '.[templates]'
	$(BIN)/python -m pytest --long --timeout=3600

check: $(FRAMEWORKS)
	scripts/check

docs: $(FRAMEWORKS)
	$(BIN)/python -m allaboard.rules.engine.pages docs/rules
	$(BIN)/python -m allaboard.report.schemas docs/schemas
	$(BIN)/python scripts/man_page.py docs/man/allaboard.1
	$(BIN)/python scripts/draw_rooms.py

clean:
	rm -rf $(VENV) .allaboard .mypy_cache .ruff_cache .pytest_cache
