# Everything a newcomer needs: make demo, make test. Needs Python 3.11 or newer, make, a package index.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints-ci.txt
FRAMEWORKS := $(VENV)/.frameworks
SITE_VENV := .venv-site
MKDOCS := $(SITE_VENV)/bin/mkdocs
# Else each of the thousands of processes that tests start would compile allaboard anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-fast test-long check docs site maybe-mkdocs clean
help:
	@echo "make demo       train for real, then see two faults named (under 6 minutes, no root)"
	@echo "make test       every test; makes what it needs"
	@echo "make test-fast  those that need no framework, while you write (under a minute)"
	@echo "make test-long  the long ones too: every drill, 20 healthy starts of each example, fuzzing"
	@echo "make check      format, lint, types, generated pages, tests"
	@echo "make docs       write the generated pages anew"
	@echo "make site       build the documentation as a web site, into build/site"

# tf_keras asks for the full tensorflow; tensorflow-cpu serves as well, so it is installed alone.
$(FRAMEWORKS): pyproject.toml constraints-ci.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[torch,tensorflow,jax,examples,etcd,test]'
	$(PIP) --no-deps tf_keras
	@touch $@

demo: $(FRAMEWORKS)
	@$(BIN)/python scripts/demo.py

test: $(FRAMEWORKS) maybe-mkdocs
	scripts/unit
	scripts/zoo

# The pure rooms, and what holds the house together: nothing here starts a framework or a browser.
PURE := coordinator policy formats readers configuration options report protocol rules schedulers
HOUSE := catalogue corpus docs errors language layers relations rule_codes
test-fast: $(FRAMEWORKS)
	$(BIN)/python -m pytest -q -n 3 -m 'not alone' $(wildcard $(PURE:%=tests/%)) $(HOUSE:%=tests/test_%.py)

test-long: $(FRAMEWORKS)
	$(PIP) -e '.[templates,trackers]' 'ray[train]'
	ALLABOARD_FUZZ_S=3600 $(BIN)/python -m pytest --long --timeout=3600

check: $(FRAMEWORKS) maybe-mkdocs
	scripts/check

docs: $(FRAMEWORKS)
	$(BIN)/python -m allaboard.rules.engine.pages docs/rules
	$(BIN)/python -m allaboard.report.schemas docs/schemas
	$(BIN)/python scripts/man_page.py docs/man/allaboard.1
	$(BIN)/python scripts/draw_rooms.py

# MkDocs has an environment of its own; once it is there, building needs no network.
$(MKDOCS): pyproject.toml constraints-ci.txt
	$(PYTHON) -m venv $(SITE_VENV)
	$(SITE_VENV)/bin/python -m pip install -q --disable-pip-version-check 'pip>=25.1'
	$(SITE_VENV)/bin/python -m pip install -q --disable-pip-version-check -c constraints-ci.txt --group docs
	@touch $@

# Where no index has MkDocs, the test that builds the site is skipped, and says so.
maybe-mkdocs:
	@$(MAKE) --no-print-directory $(MKDOCS) || echo "MkDocs cannot be installed here: the site is not tried"

site: $(MKDOCS)
	NO_MKDOCS_2_WARNING=1 $(MKDOCS) build --strict

clean:
	rm -rf $(VENV) $(SITE_VENV) build/site .allaboard .mypy_cache .ruff_cache .pytest_cache
