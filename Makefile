# A fresh clone on Debian or Ubuntu with Rust needs nothing but `make demo` or `make test`.

.PHONY: help demo test setup build lint bench bpf watch-hour watch-programs within within-real \
	attribution twins capacity interrupts faults mutants busy-tests fuzz fuzz-table fuzz-minimise fuzz-bugs \
	smoke-aarch64 dist dist-test image-test book words picture clean

help:
	@echo 'make demo    everything on a token in software and a virtual card, and a page of it: demo/report.html'
	@echo 'make test    everything that must hold before a change is taken'
	@echo 'make setup   install what the tests need: system packages, cargo-deny'
	@echo 'make build   target/release/tapstone'
	@echo 'make lint    formatting, clippy, documentation, licences: quicker than make test'
	@echo 'make bench   what measuring itself costs'
	@echo 'make bpf     builds the programs that trace --pid puts into the kernel, and compares them (clang)'
	@echo 'make watch-hour   an hour of trace --pid on 2,000 calls a second: does it grow, is a call missing'
	@echo 'make watch-programs   nginx, stunnel, ssh-agent, Java, Go and pcscd watched, beside what others count'
	@echo 'make within  1,000 searches for the highest rate within a latency, against queues of known limits'
	@echo 'make within-real  10 such searches each in real time on the null module (SEARCHES=5, SERVERS=4)'
	@echo 'make attribution  is the right limit named? 240 runs on 15 devices, which go on where they were stopped'
	@echo 'make twins   what a trace predicts, beside what repairs by hand save: TWINS=Java ROUNDS=5 for some'
	@echo 'make capacity  what two and four devices carry, beside what one predicted'
	@echo 'make interrupts  200 runs on SoftHSM2 that are interrupted, and 40 that are killed'
	@echo 'make faults  every verb under every fault, which go on where they were stopped, and a table of them'
	@echo 'make mutants CRATE=link   what the tests of a crate do not notice: docs/mutants/link.md'
	@echo 'make busy-tests   tests that look at time, 20 times each on a busy machine: MINUTES=40, TESTS=within'
	@echo 'make fuzz MINUTES=10   whatever others write, Tapstone reads it: TARGET=record,apdu for some'
	@echo 'make fuzz-bugs   whether the fuzz targets find bugs that are put into a copy'
	@echo 'make dist    packages for Linux with glibc 2.28 or later, in target/dist: ARCH=aarch64 for that processor'
	@echo 'make dist-test  installs them in fresh roots, measures there, removes them: as root'
	@echo 'make image-test  builds the image of deploy/Containerfile, measures in it, removes it: as root'
	@echo 'make book    all pages as a book: target/book/html/index.html'
	@echo 'make words   how many words the pages have'
	@echo 'make picture  the session in README.md, played again'
	@echo 'make clean   remove what was built'

demo:
	@scripts/setup demo
	@cargo build --locked --release -p tapstone
	@"$${CARGO_TARGET_DIR:-target}/release/tapstone" demo

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

# WRITE=--write puts what was built in the place of what is committed.
bpf:
	@crates/attach/programs/build $(WRITE)

# An hour (MINUTES=60) that takes a few percent of a processor; as root.
watch-hour:
	MINUTES=$(or $(MINUTES),60) scripts/watch-hour

# A few minutes; as root. PROGRAMS='nginx go' for some of them.
watch-programs:
	cargo build --locked -q --release -p tapstone -p null-module
	scripts/watch-programs "$${CARGO_TARGET_DIR:-target}/release/tapstone" \
		"$${CARGO_TARGET_DIR:-target}/release/libnull_module.so" $(PROGRAMS)

# Seeds are fixed; it prints how many intervals hold the limit of M/D/1 and of M/D/4.
within:
	cargo test --locked --release -p tapstone-measure --test within a_thousand -- --ignored --nocapture

# Two devices of known limits in real time; a minute or two for each search, on an idle machine.
within-real:
	SEARCHES=$(or $(SEARCHES),10) SEED=$(or $(SEED),1) cargo test --locked -p tapstone --test null_token searches_in_real_time -- --ignored --nocapture

# An hour on an idle machine. It goes on after the runs in target/tmp/attribution.jsonl: remove that
# after a change of the program. RUNS=26 makes fewer, SEED=900 others.
attribution:
	RUNS=$(or $(RUNS),240) SEED=$(or $(SEED),1) DEVICE="$(DEVICE)" cargo test --locked -p tapstone --test attribution two_hundred -- --ignored --nocapture

# Twenty minutes, on a machine that does nothing else.
twins:
	cargo test --locked --workspace --test trial repair_by_hand -- --ignored --nocapture

# Two hours, on a machine that does nothing else.
capacity:
	cargo test --locked -p tapstone --test trace capacity:: -- --ignored --nocapture --test-threads 1

# Ten minutes, in which it takes all processors.
interrupts:
	cargo test --locked -p tapstone --test softhsm interrupts -- --ignored --nocapture

# Minutes. It goes on after the faults in target/tmp/faults.txt: remove that after a change of the
# program.
faults:
	cargo test --locked -p tapstone --test faults whole_fault_matrix -- --ignored --nocapture

# Long: it goes on where it was stopped. WHAT=again tries survivors again, MINUTES=30 ends it in time.
mutants:
	@scripts/setup mutants
	@scripts/mutants "$(CRATE)" $(or $(WHAT),run) $(MINUTES)

# Tests that look at time, 20 times each beside programs that compute. It goes on where it was stopped.
busy-tests:
	@scripts/busy-tests $(or $(MINUTES),40) $(TESTS)

# It goes on where it was stopped, and never ends by itself before its time. JOBS=1 leaves a processor free.
fuzz:
	@MINUTES="$(MINUTES)" TARGET="$(TARGET)" JOBS="$(JOBS)" scripts/fuzz run

# What all runs of `make fuzz` reached, into docs/fuzzing.md.
fuzz-table:
	@scripts/fuzz table

# What `make fuzz` found into fuzz/corpus, as few inputs as will do.
fuzz-minimise:
	@scripts/fuzz minimise

# Bugs are put into a copy of the sources; each must be found by its target.
fuzz-bugs:
	@MINUTES="$(MINUTES)" scripts/fuzz bugs

# Twenty minutes the first time, with its tools half an hour. JOBS=1 leaves a processor free.
dist:
	@scripts/dist

# ON="bookworm rpm" for some of the systems.
dist-test:
	@scripts/setup dist
	@scripts/dist-test $(ON)

# A few minutes; wants buildah and mmdebstrap.
image-test:
	@scripts/image-test

# Ten minutes the first time.
smoke-aarch64:
	@scripts/smoke-aarch64

book:
	@scripts/setup book
	@scripts/book

words:
	@scripts/words

picture:
	@scripts/setup demo
	@scripts/setup picture
	@"$${CARGO_TARGET_DIR:-target}/tools/picture/bin/python" -X utf8 scripts/picture \
		"$(or $(PROGRAM),$${CARGO_TARGET_DIR:-target}/release/tapstone)" docs/images/session.svg

clean:
	cargo clean
	rm -rf demo
