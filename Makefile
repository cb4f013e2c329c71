# Two commands need nothing but Python 3.11+, make and a C++ compiler:
#   make demo   build every named version, compile them, verify them on the CPU
#   make test   run the tests (make quick those that take less than a minute)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The compiler and disassembler come as wheels where the machine has none of its own.
EXTRAS = dev$(if $(and $(shell command -v nvcc),$(shell command -v nvdisasm)),,$(comma)nvcc)
comma := ,

.PHONY: demo test quick lint clean

demo: $(READY)
	$(BIN)/kgen build --all
	$(BIN)/kgen check --on cpu

test: $(READY)
	$(BIN)/pytest -n auto

quick: $(READY)
	$(BIN)/pytest -n auto -m 'not slow and not gpu'

lint: $(READY)
	$(BIN)/black --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror generated/*.cu generated/*.cpp kgen/cpu/runtime/*.* kgen/cpu/runtime/include/*.h kgen/cpu/runtime/observe/* kgen/gpu/copy.cu kgen/timing/judge.cu
	$(BIN)/kgen build --all --check

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kgen needs Python 3.11 or newer; set one with make PYTHON=python3.12"; exit 3; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
