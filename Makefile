# The commands of the README. meson and ninja do the work; tools/setup installs what is missing.

BUILD ?= build
CONFIGURE ?=

.PHONY: all build run test sanitize soak faults test-aarch64 test-release fuzz lint bench compare dist deb rpm image clean

all: build

build: setup-build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) -Dtests=false $(CONFIGURE)
	@ninja -C $(BUILD) wattribute

run: build
	@tools/run $(BUILD)/wattribute

# Every test, on an ordinary build. SUITES="unit web" runs only those.
test: setup-test
	@tools/run-tests $(BUILD)

# The same tests under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: setup-test
	@tools/run-tests $(BUILD)-sanitize -Db_sanitize=address,undefined

# Cross-built, under qemu-user.
test-aarch64: setup-aarch64
	@tools/test-aarch64 $(BUILD)-aarch64

# Under sanitizers: cgroups and real containers that come and go, for an hour each, and a simulated week.
SOAK_SECONDS ?= 3600
SOAK_HOURS ?= 168
soak: setup-test
	@WATTRIBUTE_CHURN_SECONDS=$(SOAK_SECONDS) WATTRIBUTE_WEEK_HOURS=$(SOAK_HOURS) SUITES=churn TIMEOUT_FACTOR=0 \
		tools/run-tests $(BUILD)-sanitize -Db_sanitize=address,undefined

# Each call of libc fails, up to the 2,000th of its kind; takes an hour. FAULTS=1000 draws so many.
FAULTS ?= all
faults: setup-test
	@WATTRIBUTE_FAULTS=$(FAULTS) SUITES=faults TIMEOUT_FACTOR=0 tools/run-tests $(BUILD)

# What CI leaves out to save time: every test under sanitizers and in fresh roots of Debian 12 and 13, and the packages that are
# built there, in clean systems of the same release with systemd.
test-release: sanitize
	@tools/test-in-root bookworm
	@tools/test-in-root trixie
	@tools/test-package bookworm
	@tools/test-package trixie

# Searches for inputs that break a parser, for FUZZ_SECONDS each.
FUZZ_SECONDS ?= 30
fuzz: setup-lint
	@tools/run-fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

lint: setup-lint
	@tools/lint

bench: build
	@ninja -C $(BUILD) bench/attribution_cost bench/cgroup_read bench/process_scan
	@bench/exporter-cost $(BUILD)/wattribute
	@bench/page-cost $(BUILD)/wattribute
	@$(BUILD)/bench/attribution_cost
	@$(BUILD)/bench/cgroup_read
	@$(BUILD)/bench/process_scan

# What is released, in $(BUILD)/packages: docs/install.md.
dist:
	@tools/dist $(BUILD)/packages

deb rpm: setup-package
	@tools/package $@ $(BUILD)/packages

# By Docker or Podman, for these architectures; those of others than this machine are emulated.
PLATFORMS ?=
image:
	@tools/make-image $(BUILD)/packages $(PLATFORMS)

# Beside Debian's node-exporter, as root; `tools/setup servers` installs it.
compare: build
	@bench/node-exporter $(BUILD)/wattribute

setup-%:
	@tools/setup $*

clean:
	rm -rf $(BUILD) $(BUILD)-sanitize $(BUILD)-aarch64 $(BUILD)-fuzz
