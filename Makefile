# The commands of a person who works on the fabric. `make` alone lists them. Nothing has to be there before but Node.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
FABRIC := node dist/services/app/main.js
LOCK_STAMP := node_modules/.lock-digest

.PHONY: help setup build check test demo up down status bench test-faults test-histories test-otel test-runtimes record-runtime format generate clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: ## install what package-lock.json names, when it is not there yet
	@command -v node >/dev/null 2>&1 || { echo 'Node.js 20.19 or newer is missing: install it from https://nodejs.org, or with "nvm install 22"' >&2; exit 1; }
	@node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' \
	  || { echo "Node.js 20.19 or newer is needed, found $$(node --version): install it from https://nodejs.org, or with \"nvm install 22\"" >&2; exit 1; }
	@digest="$$(cksum < package-lock.json)"; \
	if [ "$$(cat $(LOCK_STAMP) 2>/dev/null)" != "$$digest" ]; then \
	  echo 'installing dependencies (npm ci, once)'; \
	  npm ci --no-audit --no-fund --loglevel=error && echo "$$digest" > $(LOCK_STAMP); \
	fi

build: setup ## compile to dist/
	@node node_modules/typescript/bin/tsc -p tsconfig.build.json
	@node deploy/copy-assets.mjs
	@if [ -f dist/services/app/main.js ]; then chmod +x dist/services/app/main.js; fi

check: setup ## types, lint, format, imports, words, generated files, unused code: no server
	@node test/house/check.mjs $(STEPS)

test: setup build ## every test that fits in CI, on real servers
	@node test/house/run-tests.mjs unit servers

test-faults: setup ## kill, delay, cut and restart things, with a ledger (half an hour); NAME=broker-reset picks cells, REPS=1 rounds
	@node node_modules/typescript/bin/tsc -p tsconfig.bench.json
	@FABRIC_TEST_FAULT_REPS=$(or $(REPS),3) node test/house/run-tests.mjs faults $(if $(NAME),"--testNamePattern=$(NAME)")

test-histories: setup ## 200 random histories through real servers, against clean runs (half an hour); SEEDS=17 or 1-50 picks some
	@FABRIC_TEST_HISTORY_SEEDS=$(or $(SEEDS),1-200) node test/house/run-tests.mjs histories

test-otel: setup build ## spans read back from a real Jaeger, which Go builds once (minutes)
	@node test/house/run-tests.mjs otel

test-runtimes: setup ## the real clients against the real gate (installs them once, 0.5 GB each; minutes); NAME=codex picks some
	@FABRIC_TEST_RUNTIMES="$(NAME)" node test/house/run-tests.mjs runtimes

record-runtime: setup ## what a client's hooks send, beside the corpus: NAME=codex, VERSION=0.171.0 for another version than the pinned one
	@node node_modules/typescript/bin/tsc -p tsconfig.bench.json
	@node deploy/copy-assets.mjs
	@node dist/test/bench/record-runtime.js $(NAME) $(VERSION)

demo: build ## the story on real parts; ONCE=1 ends after it
	@$(FABRIC) demo $(if $(filter 1 yes true,$(ONCE)),--once)

up: build ## start the local stack and all services
	@$(FABRIC) up $(ARGS)

down: setup ## stop them; ARGS=--wipe forgets the data too
	@$(MAKE) --no-print-directory build || echo 'the tree does not compile: what was built before stops the stack' >&2
	@$(FABRIC) down $(ARGS)

status: build ## endpoints, versions, health, lag
	@$(FABRIC) status $(ARGS)

bench: setup ## measure, each figure beside a limit or a peer; NAME=relay|latency|host|replay|gate|hooks|policy|avro|redrive|memory|processors|goal|questions picks one
	@node node_modules/typescript/bin/tsc -p tsconfig.bench.json
	@node deploy/copy-assets.mjs
	@node dist/test/bench/main.js $(NAME)

format: setup ## write the format and the fixes of the linter
	@node node_modules/eslint/bin/eslint.js . --fix || true
	@node node_modules/prettier/bin/prettier.cjs --write --log-level warn .

generate: setup ## write the generated schemas and types again, after a change of schemas/
	@node node_modules/typescript/bin/tsc -p tsconfig.build.json >/dev/null || true # a new type has no TypeScript yet
	@$(FABRIC) schema generate
	@node node_modules/prettier/bin/prettier.cjs --write --log-level warn schemas

clean: ## remove what was built; data of the local stack stays
	@rm -rf dist coverage .fabric/reports node_modules/.cache/house
