# The entry point of the project. `make help` lists the goals.
#
# Works on Debian 12 and 13 with cargo, gcc and git. `setup` installs missing packages for a goal; it prints their
# names, and asks for root (sudo) only if there is something to install.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help serve quick setup setup-build setup-dist setup-test setup-lint setup-bench setup-apps setup-coverage setup-generate build dist \
	test test-fast test-composer test-php test-tiny test-tls test-h2 test-h3 test-fastcgi test-php-src test-stress test-long test-asan test-relocations test-apps test-apps-trixie test-packages \
	test-php83 test-php84 test-php84-short test-php85 coverage \
	install uninstall deb lint format generate docs bench counts fuzz clean

CARGO ?= cargo
TARGET_DIR := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
LISTEN ?= 127.0.0.1:8080
PREFIX ?= /usr/local
DESTDIR ?=
SYSCONFDIR ?= /etc
# Programs for packages, installations and benchmarks: `make dist`.
BUILT ?= $(TARGET_DIR)/dist
# Evaluated on use, after `setup` has installed it.
PHP_CONFIG ?= $(shell scripts/php-version.sh config 2>/dev/null)
export PHP_CONFIG
PHP ?= $(shell $(PHP_CONFIG) --php-binary)
# The black-box tests, with the programs that `quick` has made.
SCENARIOS = HOWDAH_BIN=$(abspath $(TARGET_DIR))/quick/howdah scripts/scenarios.sh

# The black-box tests in another Debian or Ubuntu, with its PHP.
IN_DEBIAN = scripts/skips.sh scripts/test-in-debian.sh

help: ## List the goals
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 14

serve: quick ## Install missing packages, build quickly, serve examples/hello on 127.0.0.1:8080 (LISTEN=ADDR:PORT)
	$(TARGET_DIR)/quick/howdah serve examples/hello --listen $(LISTEN) $(if $(filter 0,$(shell id -u)),--allow-root)

setup: setup-build setup-test setup-lint ## Install everything for building, testing and linting

setup-build setup-dist setup-test setup-lint setup-bench setup-apps setup-coverage setup-generate: setup-%:
	@scripts/setup.sh $*

quick: ## Build howdah and howdah-php in the shortest time, for tests (profile quick); howdah while apt installs PHP
	@scripts/setup.sh build $(CARGO) build --profile quick --locked -p howdah
	@echo "building howdah and howdah-php: some minutes on two cores the first time; for speed: make dist"
	$(CARGO) build --profile quick --locked -p howdah -p howdah-php

build: setup-build ## Build howdah and howdah-php for speed (profile release)
	$(CARGO) build --release --locked -p howdah -p howdah-php

dist: setup-dist ## Build them as packages ship them: LTO, guided by a profile, which takes two builds (PGO=no: one)
	@CARGO=$(CARGO) PGO=$(PGO) scripts/dist.sh

test: ## Build and run all tests; ends with the slowest, the flaky and the skipped ones
	@CARGO=$(CARGO) scripts/skips.sh scripts/test.sh

# Scenarios that a change is likely to break, without databases, nginx and PHP-FPM: the server in classic mode, and some
# of each mode.
FAST_SERVER := server::output server::input server::protocol server::static_files server::raw_targets server::script_life server::crash::a_
FAST_MODES := worker::request_loop snapshot::loop_body async_mode::isolation
FAST = HOWDAH_BIN=$(abspath $(TARGET_DIR))/quick/howdah scripts/scenarios.sh --quiet --test scenarios --

test-fast: setup-build ## In less than a minute once built: the unit tests that need no PHP, and some scenarios of every area
	$(CARGO) test --profile quick --locked --quiet --lib --bins -- --skip fuzz
	$(CARGO) build --profile quick --locked -p howdah -p howdah-php
	HOWDAH_TEST_MODES=classic $(FAST) $(FAST_SERVER) --skip ::reference
	$(FAST) $(FAST_MODES)

test-tiny: setup-test quick ## The scenarios of classic mode again, with rings so small that each boundary is met
	HOWDAH_TINY_RINGS=1 HOWDAH_TEST_MODES=classic $(SCENARIOS) --test scenarios -- ::classic

# The same scenarios must give the same results over TLS.
test-tls: setup-test quick ## The server's scenarios of classic mode again, over TLS; and all checks of testssl.sh
	HOWDAH_TEST_TLS=1 HOWDAH_TEST_MODES=classic HOWDAH_TESTSSL_ALL=1 $(SCENARIOS) --test scenarios -- $(FAST_SERVER) server::half_closed server::early_hints server::budgets server::tls_scanned --skip ::reference

# And over another version of HTTP. Scenarios that depend on HTTP/1.1's bytes declare that (`Setup::http1`) and are
# reported as skipped.
HTTP_SCENARIOS := $(FAST_SERVER) server::half_closed server::early_hints server::budgets server::compression server::sessions \
	server::rules server::status_pages server::passwords server::slow_clients server::scheduling server::handed_over_files \
	server::worker_trust server::php_settings server::load server::lifecycle
OVER = HOWDAH_TEST_MODES=classic HOWDAH_TEST_HTTP=

test-h2: setup-test quick ## The server's scenarios of classic mode again, over HTTP/2
	$(OVER)2 $(SCENARIOS) --test scenarios -- $(HTTP_SCENARIOS) --skip ::reference

test-h3: setup-test quick ## The server's scenarios of classic mode again, over HTTP/3
	$(OVER)3 $(SCENARIOS) --test scenarios -- $(HTTP_SCENARIOS) --skip ::reference

# Scenarios with a reference, and two modules without one.
test-fastcgi: setup-test quick ## The scenarios that compare with PHP-FPM again, behind nginx by FastCGI, in every mode
	HOWDAH_TEST_FASTCGI=1 $(SCENARIOS) --test scenarios -- worker::request_loop snapshot::state \
		$$($(SCENARIOS) --quiet --test scenarios -- --list | sed -n 's/::reference: test$$//p') --skip ::reference

# Scenarios by name, or those listed in a file: SCENARIO=@file.
named = $(foreach name,$(1),$(if $(filter @%,$(name)),$(shell cat $(name:@%=%)),$(name)))

test-stress: setup-test quick ## Scenarios many times under busy loops, with processes stopped now and then: SCENARIO=name or @file (default: the 50 of tests/timed.txt, which depend most on time), N=200 (default 10 without SCENARIO)
	HOWDAH_TEST_STRESS=$(or $(N),$(if $(SCENARIO),200,10)) $(SCENARIOS) --test scenarios -- $(call named,$(or $(SCENARIO),@tests/timed.txt))

# The programs that PHP's tests start could start the tests again, endlessly: run.py prevents that, and limits the
# number of processes.
test-php-src: quick ## PHP's own tests over HTTP: request tests in every mode, 8,000 others in classic and snapshot mode (a Debian mirror; FILTER=text)
	scripts/php-src.sh $(TARGET_DIR)/php-src
	timeout 3600 python3 tests/php-src/run.py --howdah $(TARGET_DIR)/quick/howdah --source $(TARGET_DIR)/php-src \
		--ini /etc/php/$$($(PHP_CONFIG) --version | cut -d. -f1,2)/embed --filter "$(FILTER)"

test-long: setup-test quick ## The long form of tests that `make test` shortens: 100,000 requests that leak or wait, compared with classic mode (REQUESTS=n, SEED=n), crowds of 20,000 clients, a million requests in storms of kills (STORM=n for each mode), 1000 reloads under load (RELOADS=n), and 50 upgrades under load (UPGRADES=n)
	HOWDAH_STORM_REQUESTS=$(or $(STORM),250000) $(SCENARIOS) --test scenarios -- --nocapture --test-threads 1 server::storms::a_storm_of_kills
	HOWDAH_RELOADS=$(or $(RELOADS),1000) $(SCENARIOS) --test scenarios -- --nocapture --test-threads 1 server::reload::reloads_of_everything
	HOWDAH_TEST_UPGRADES=$(or $(UPGRADES),50) $(SCENARIOS) --test scenarios -- --test-threads 1 server::upgrade::an_upgrade_loses
	HOWDAH_SLOW_CLIENTS=20000 $(SCENARIOS) --test scenarios -- --test-threads 1 server::budgets
	HOWDAH_TEST_CONNECTIONS=10000 $(SCENARIOS) --test scenarios -- --test-threads 1 server::fastcgi_failures::a_thousand
	HOWDAH_DIFFERENCE_REQUESTS=$(or $(REQUESTS),100000) HOWDAH_DIFFERENCE_SEED=$(or $(SEED),any) \
		$(SCENARIOS) --test scenarios -- --nocapture --test-threads 1 snapshot::difference async_mode::difference

# Not in snapshot mode, which restores memory without the sanitizer's knowledge, nor tests that measure memory or
# exhaust it.
test-asan: setup-test ## The scenarios of async, worker and classic mode with the C shim under the address sanitizer
	HOWDAH_SANITIZE=address CARGO_TARGET_DIR=$(abspath $(TARGET_DIR))/asan $(CARGO) build --profile quick --locked -p howdah -p howdah-php
	USE_ZEND_ALLOC=0 HOWDAH_TEST_SANITIZED=1 HOWDAH_TEST_MODES=classic,worker,async HOWDAH_BIN=$(abspath $(TARGET_DIR))/asan/quick/howdah \
		scripts/scenarios.sh --test scenarios -- async_mode worker:: ::worker ::classic

coverage: setup-coverage ## Report the lines of Rust (LLVM) and of the C shim (gcov) that tests run: all tests, or SCENARIO=name
	scripts/coverage.sh $(call named,$(SCENARIO))

test-relocations: setup-build ## Check the calls that async mode hooks, on this processor and (with a cross compiler and qemu) on aarch64
	scripts/test-relocations.sh

test-composer: setup-build ## The Composer packages' own tests, those that need no server
	@for test in php/*/tests/*.php; do $(PHP) $$test || exit 1; done

test-apps: setup-apps quick ## Real applications compared with nginx and PHP-FPM, and a dozen of Debian's with their presets compared with Apache
	scripts/unpack-apps.sh $(TARGET_DIR)/apps
	HOWDAH_APPS=$(abspath $(TARGET_DIR))/apps/root $(SCENARIOS) --test apps -- --skip packaged::
	scripts/unpack-packaged.sh $(TARGET_DIR)/packaged
	HOWDAH_BIN=$(abspath $(TARGET_DIR))/quick/howdah scripts/with-packaged.sh $(TARGET_DIR)/packaged \
		scripts/skips.sh $(CARGO) test --locked --profile quick --workspace --test apps -- --nocapture packaged::

test-apps-trixie: quick ## The same with Debian 13's applications and PHP 8.4, in a Debian 13 made by debootstrap (root, a mirror)
	$(IN_DEBIAN) trixie 8.4 apps

# Only copies: `make dist && sudo make install`. Units, manual pages and settings are included; existing settings stay.
install: ## Install what `make dist` has made (PREFIX=/usr/local, DESTDIR=, SYSCONFDIR=/etc)
	@PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) SYSCONFDIR=$(SYSCONFDIR) BUILT=$(BUILT) scripts/install.sh install

uninstall: ## Remove what `make install` has installed; settings, logs and state stay
	@PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) SYSCONFDIR=$(SYSCONFDIR) BUILT=$(BUILT) scripts/install.sh uninstall

deb: dist ## Make the Debian packages howdah and howdah-phpX.Y, and their debug symbols, in target/debian
	BUILT=$(BUILT) packaging/debian/build.sh

test-packages: dist ## Install, start, upgrade, remove and purge the Debian packages under systemd, also in PHP-FPM's unit and with WordPress, in a root made by debootstrap (root, a mirror)
	BUILT=$(BUILT) scripts/skips.sh scripts/test-packages.sh

# PHP_CONFIG: this one alone (php-config8.3, /opt/php/bin/php-config).
test-php: setup-test ## Build with every php-configX.Y that is found, or PHP_CONFIG=, and run all scenarios with it (FILTER=name)
	@for php_config in $(if $(filter file,$(origin PHP_CONFIG)),$$(scripts/php-version.sh configs),$(PHP_CONFIG)); do \
		scripts/test-php.sh $$php_config $(FILTER) || exit 1; \
	done

test-php84: ## Build and run all scenarios with PHP 8.4 in a Debian 13 made by debootstrap (root, a mirror; FILTER=name)
	$(IN_DEBIAN) trixie 8.4 test $(FILTER)

# Differences between versions of PHP: compat.h and the layouts of extensions' variables, in all modes.
PHP_TELLING := async_mode::isolation async_mode::extensions snapshot::loop_body snapshot::state snapshot::boot \
	snapshot::extensions worker::request_loop server::output server::input server::script_life server::php_settings \
	server::php_versions server::process_changes
PHP_SHORT = $(or $(FILTER),$(PHP_TELLING)) --skip ::reference --skip postgresql

test-php84-short: quick ## Scenarios that depend on PHP's version, with the programs that `make test` built, on PHP 8.4 in a minimal Debian 13; two versions at once
	$(IN_DEBIAN) trixie 8.4 scenarios $(PHP_SHORT)

test-php83: quick ## The same with PHP 8.3 in an Ubuntu 24.04 (its keys: ubuntu-keyring, or KEYRING=file)
	$(IN_DEBIAN) noble 8.3 scenarios $(PHP_SHORT)

test-php85: quick ## The same with PHP 8.5 in an Ubuntu 26.04
	$(IN_DEBIAN) resolute 8.5 scenarios $(PHP_SHORT)

lint: setup-lint ## Formatting, clippy, clang-format, documentation; warnings are errors
	@scripts/lint.sh

format: setup-lint ## Format Rust and C
	$(CARGO) fmt --all
	clang-format -i $$(find crates/php-host/shim crates/php-host/tests -name '*.[ch]')

generate: setup-generate ## Rewrite the generated files: the C headers, the tables of PHP functions, the reference pages, the stubs and the reference of the async library
	HOWDAH_GENERATE=1 $(CARGO) test --quiet --profile quick --locked --workspace --test headers
	scripts/generate-arginfo.sh
	$(PHP) php/async/tools/generate.php
	$(CARGO) build --quiet --profile quick --locked --workspace --example reference
	$(TARGET_DIR)/quick/examples/reference

docs: ## Build the documentation as a site with search in target/docs, and check its links (installs mdBook below target)
	@CARGO=$(CARGO) scripts/docs.sh $(TARGET_DIR)/docs

fuzz: setup-build quick ## Fuzz the input of hostile clients and workers for longer (ROUNDS=n, FUZZ_SECONDS=n), and compare generated .htaccess files with Apache (HTACCESS_CASES=n)
	HOWDAH_FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) $(CARGO) test --release -p howdah-protocol -p howdah-site -p howdah-websocket --lib -- --nocapture fuzz
	HOWDAH_FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) $(CARGO) test --release -p howdah-transport --lib -- --nocapture fuzz
	HOWDAH_FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) $(CARGO) test --release -p howdah-pool --lib -- --nocapture fuzz
	HOWDAH_FUZZ_ROUNDS=$(or $(ROUNDS),2000000) $(CARGO) test --release -p howdah-transport --test broken_peer -- nothing_a_worker
	HOWDAH_DIFFERENCE_SEED=any HOWDAH_HTACCESS_CASES=$(or $(HTACCESS_CASES),2000) \
		$(SCENARIOS) --test scenarios -- --nocapture server::htaccess_apache::generated_files

counts: setup-test build ## Count what one request costs (system calls, instructions, allocations) and compare with lab/counts.toml (COUNTS="--update", "--case hello")
	$(CARGO) build --quiet --profile quick --locked --workspace --bin howdah-lab
	HOWDAH=$(abspath $(TARGET_DIR))/release/howdah $(TARGET_DIR)/quick/howdah-lab counts $(COUNTS)

# A suite that misses a goal does not prevent the measurement of the others.
bench: setup-bench dist ## Measure Howdah and its peers, suite by suite, and four published comparisons in short; FRANKENPHP and SWOOLE_SO may name those two (WARMUP=10)
	@status=0; \
	lab() { HOWDAH=$(abspath $(BUILT))/howdah $(CARGO) run --release --locked -p howdah-lab -- run --suite "$$@" || { status=$$?; [ $$status != 130 ] || exit 130; }; }; \
	lab html-pdf-random --systems nginx-fpm,apache,howdah-classic --warmup $(or $(WARMUP),3) --goals lab/goals.toml; \
	lab worker --warmup $(or $(WARMUP),3) --goals lab/goals-worker.toml; \
	lab async --warmup $(or $(WARMUP),3) --goals lab/goals-async.toml; \
	lab snapshot --warmup $(or $(WARMUP),3) --goals lab/goals-snapshot.toml; \
	lab tls --warmup $(or $(WARMUP),1.5) --goals lab/goals-tls.toml; \
	lab fastcgi --warmup $(or $(WARMUP),3) --goals lab/goals-fastcgi.toml; \
	lab mixed --warmup $(or $(WARMUP),1.5) --goals lab/goals-mixed.toml; \
	for article in classic-vs-fpm coroutine-vs-fpm three-environments sylius-worker-vs-thread; do \
		HOWDAH=$(abspath $(BUILT))/howdah $(CARGO) run --release --locked -p howdah-lab -- reproduce $$article --short || { status=$$?; [ $$status != 130 ] || exit 130; }; \
	done; \
	exit $$status

clean: ## Remove what was built
	$(CARGO) clean
