# A fresh clone on Debian or Ubuntu with Rust needs nothing but `make demo` or `make test`.

.PHONY: help demo test setup build lint bench clean

help:
	@echo 'make demo    measure a token in software: builds, makes a SoftHSM2 token, removes it again'
	@echo 'make test    everything that must hold before a change is taken'
	@echo 'make setup   install what the tests need: system packages, cargo-deny'
	@echo 'make build   target/release/tapstone'
	@echo 'make lint    formatting, clippy, documentation, licences: quicker than make test'
	@echo 'make bench   what measuring itself costs'
	@echo 'make clean   remove what was built'

demo:
	@scripts/setup demo
	@cargo build --locked --release -p tapstone
	@scripts/demo

test:
	@scripts/test

setup:
	@scripts/setup test

build:
	@scripts/setup demo
	cargo build --locked --release -p tapstone

lint:
	@scripts/test lint

bench:
	@scripts/setup demo
	cargo bench --locked --workspace --bench '*'

clean:
	cargo clean
	rm -rf demo
