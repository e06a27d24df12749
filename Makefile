# Two commands matter: `make run` and `make test`. Both set up what they need.
.PHONY: help run test test-postgres test-pythons screenshots check format lock audit clean
.DEFAULT_GOAL := help
PYTHON_BIN := .venv/bin/python
ARGS ?=
# Tests wait nearly half of their time, for processes and models: three keep two cores busy.
AT_ONCE ?= 3
# Packages are installed uncompiled: were they never kept, each process would compile 2,000 modules
# at each start, in 3 s of CPU.
unexport PYTHONDONTWRITEBYTECODE
# Each process of the tests would start as many threads of its own: a sixth more CPU for trainings.
test test-postgres test-pythons: export OMP_NUM_THREADS = 1
test test-postgres test-pythons: export OPENBLAS_NUM_THREADS = 1

help:  ## Show this list
	@grep -E '^[a-z-]+: .*##' Makefile | sed 's/:.*## /\t/' | expand -t 16

run:  ## Set up, start everything, print the address; Ctrl-C ends it
	@scripts/setup run
	@exec $(PYTHON_BIN) -m apps.embedded

test:  ## Set up and run all tests; ARGS="tests/chat -x" for some
	@scripts/setup test
	@chromium="$$(scripts/chromium)" && \
		WORKBENCH_CHROMIUM="$$chromium" exec $(PYTHON_BIN) -m pytest -n $(AT_ONCE) $(ARGS)

test-postgres:  ## The same on PostgreSQL: a server of its own, or WORKBENCH_TEST_DATABASE_URL
	@scripts/setup test
	@AT_ONCE=$(AT_ONCE) scripts/test-postgres $(ARGS)

test-pythons:  ## The fast tests on every other Python from 3.11 that is here
	@scripts/setup test
	@AT_ONCE=$(AT_ONCE) scripts/test-pythons $(ARGS)

check:  ## Format, lint, types, Django's own checks, migrations
	@scripts/setup test
	$(PYTHON_BIN) -m ruff format --check
	$(PYTHON_BIN) -m ruff check
	$(PYTHON_BIN) -m mypy apps workbench bench
	.venv/bin/lint-imports --no-logo
	$(PYTHON_BIN) -m djlint --check --quiet templates
	$(PYTHON_BIN) manage.py makemigrations --check --dry-run # Django's checks come first, as always

screenshots:  ## Take the pictures of every page in docs/img; ARGS="chat job" for some
	@scripts/setup test
	@chromium="$$(scripts/chromium)" && \
		WORKBENCH_CHROMIUM="$$chromium" exec $(PYTHON_BIN) -m tests.screenshots docs/img $(ARGS)

format:  ## Format the code and mend what the linter can
	@scripts/setup test
	$(PYTHON_BIN) -m ruff format
	$(PYTHON_BIN) -m ruff check --fix
	-$(PYTHON_BIN) -m djlint --reformat --quiet templates

lock:  ## Pin what requirements/*.in ask for, by version and hash; ARGS="--upgrade" for the newest
	@scripts/setup test
	scripts/lock $(ARGS)

audit:  ## Look the pinned packages up among known vulnerabilities (asks PyPI)
	@scripts/setup test
	$(PYTHON_BIN) -m pip_audit --strict --disable-pip --requirement requirements.txt

clean:  ## Remove what is installed and cached; your data in var/ stays
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache
