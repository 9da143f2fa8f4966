# What a stranger types. Every target may be repeated; each one first makes sure that its tools are there.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Where rustup puts cargo, for shells that were opened before it did.
export PATH := $(PATH):$(HOME)/.cargo/bin

# Command lines of the tools that the tests bring along, at their pinned versions.
python := tests/.venv/bin/python
ruff := tests/.venv/bin/ruff --config tests/ruff.toml

shell_scripts = $(shell grep -rlIE '^#!(/usr)?/bin/(env )?(ba)?sh' --exclude-dir=target --exclude-dir=.git --exclude-dir='.venv*' --exclude-dir=kernel-tuning .)
python_sources := tests examples

# How long `make fuzz` spends on each target, in seconds.
FUZZ_SECONDS ?= 60

# Which failure cases `make test-cases` runs, such as `FR-01 MS-08`; empty: all.
CASES ?=

# Flags of the comparison, such as `--rounds 1 --workloads small-json-by-header` for a quick look.
BENCH_FLAGS ?=

.PHONY: help setup setup-host setup-python build demo test test-rust test-tuning test-python test-cases lint bench fuzz clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: setup-host setup-python ## Install what is missing: packages, Rust, Python environments for the tests

setup-host:
	@.ci/setup-host

setup-python: setup-host
	@.ci/setup-python

build: setup-host ## Build the four crates (dev profile)
	cargo build --workspace --bins

demo: build ## Run the whole main job on this machine in under a minute, and judge it
	python3 examples/demo

test: test-rust test-tuning test-python ## Unit, property, integration and end-to-end tests

test-rust: setup-host
	cargo test --workspace

test-tuning: setup-host
	kernel-tuning/tests/run

test-python: setup build
	$(python) -m pytest tests

test-cases: setup build ## Run the tests behind docs/cases.md and tell of each failure case: passed, failed, missing
	$(python) tests/cases.py $(CASES)

lint: setup ## Formatting and lints of Rust, Python and shell; warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(ruff) format --check $(python_sources)
	$(ruff) check $(python_sources)
	shellcheck $(shell_scripts)

bench: ## Compare with other proxies and hold the targets against it, release build; writes bench-results/
	@.ci/setup-host --with-bench-peers
	@.ci/setup-bench-peers
	cargo build --release --workspace --bins
	cargo bench --workspace --bench decide -- --warm-up-time 1 --measurement-time 2 '^decide/8 rules'
	target/release/switchboard-loadtest compare $(BENCH_FLAGS)

fuzz: setup-host ## Fuzz every parser for FUZZ_SECONDS each (default 60)
	fuzz/run.sh $(FUZZ_SECONDS)

clean: ## Remove everything that was built or installed in this folder
	cargo clean
	rm -rf tests/.venv tests/.venv-mlserver tests/.cache loadtest/peers/.venv-*
