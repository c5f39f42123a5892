# SPDX-License-Identifier: Apache-2.0
# A thin front door over Meson. `make help` lists what it opens.
.DEFAULT_GOAL := build
SHELL := /bin/bash
BUILD := build

.PHONY: help setup build run demo test check sanitize valgrind soak bench fuzz install clean

help:                ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 18

setup:               ## install the Debian packages that are missing
	@tools/setup

build: setup         ## build build/ibid and libibid
	@tools/build $(BUILD) $(if $(CI),-Dwerror=true)

run: build           ## serve examples/payments on a fresh SQLite file (PORT=...), until Ctrl-C
	@IBID_BIN=$(BUILD)/ibid tools/serve

demo: build          ## a payment, its retry and its conflict, on the command line
	@IBID_BIN=$(BUILD)/ibid tools/demo

test: build          ## all tests, on SQLite, and on a PostgreSQL and a Kafka started for them
	@tools/test $(BUILD)

check: build         ## format, warnings as errors (gcc, clang), cppcheck, clang-tidy, layers
	@tools/check

sanitize: setup      ## address+undefined over all that does not wait, the thread sanitizer over what has threads
	@tools/build build-asan -Db_sanitize=address,undefined -Db_lundef=false
	@tools/test build-asan --no-suite waits
	@tools/build build-tsan -Db_sanitize=thread -Db_lundef=false
	@tools/test build-tsan --suite threads

valgrind: build      ## unit and store tests under valgrind (not part of CI)
	@tools/test $(BUILD) --valgrind --suite valgrind

soak: build          ## processes on one SQLite file; hostile and generated requests; relays and a Kafka that are killed (an hour at most)
	@IBID_BIN=$(BUILD)/ibid tools/soak

bench: setup         ## protected against unprotected, on both stores (BENCH_ONLY=payments,http,...)
	@tools/build build-bench -Dbuildtype=release -Dtests=false
	@tools/with-postgres tools/with-kafka build-bench/bench/bench

fuzz: setup          ## each fuzz target for SECONDS (default 60)
	@tools/fuzz $${SECONDS_EACH:-60}

install: build       ## install binary, library, header and pkg-config file (DESTDIR, PREFIX)
	@tools/install $(BUILD)

clean:               ## remove the build directories
	rm -rf build build-asan build-tsan build-bench build-check build-clang build-fuzz
