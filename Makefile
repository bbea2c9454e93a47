# The commands of the house. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CARGO ?= cargo

.PHONY: help setup test demo lint doc deny unit lab-test model model-deep docs bench lab-bench lab-compare campaign package

help: ## List the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-8s %s\n", $$1, $$2 }'

setup: ## Install what building and testing need (Debian packages, both etcd series, a BMC emulator)
	scripts/setup
	scripts/fetch-etcd
	scripts/fetch-sushy

test: setup lint doc deny unit model lab-test ## Everything that CI runs

demo: setup ## Show what Dyad does, on this machine
	scripts/demo

lint: ## Formatting, and clippy with warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

doc: ## Build the code's documentation with warnings denied
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --document-private-items

deny: ## Check licences, sources and duplicate versions of the libraries
	scripts/deny

unit: ## Unit, table, model and real-etcd tests
	$(CARGO) test --workspace --locked

lab-test: setup ## Scenarios on two real nodes in the lab (needs root)
	scripts/lab-test

model: ## The exhaustive model and the broken variants (optimised build)
	$(CARGO) test --package dyad-model --release --features variants --locked -- --nocapture

model-deep: ## Deeper bounds of the model: 4 faults; 2 faults (any cut, dead BMCs) with a leave and a human act; 3 faults and a leave
	$(CARGO) build --package dyad-model --release --locked
	target/release/dyad-model 4 0 0 1
	target/release/dyad-model 2 1 1 1 1 1 1
	target/release/dyad-model 3 1 0 1

docs: ## Rewrite the generated pages (manual, completions, reference)
	DYAD_UPDATE=1 $(CARGO) test --package dyad --package dyad-agent --test generated --locked

package: setup ## The packages: target/package/dyad.deb and dyad.rpm
	scripts/package

lab-bench: setup ## How long a take-over and the rest take, on two real nodes (needs root)
	scripts/package
	target/release/dyad lab bench

lab-compare: setup ## The same for others on the same nodes, side by side (needs root and two hours)
	scripts/package
	target/release/dyad lab bench --rounds 3 --database-mb 1,100,1000 --against force-new-cluster,podman-etcd \
		--plot docs/images/comparison.svg -o json > docs/benchmarks/comparison.json
	target/release/dyad lab bench --from docs/benchmarks/comparison.json

campaign: setup ## 300 random faults on each release, as seeds that are told (needs root and a night)
	scripts/package
	target/release/dyad lab campaign --faults 300
	target/release/dyad lab campaign --faults 300 --release bookworm

bench: setup ## Run the benchmarks
	$(CARGO) bench --workspace --locked
