# The commands of the README. meson and ninja do the work; tools/setup installs what is missing.

BUILD ?= build
CONFIGURE ?=

.PHONY: all build run test sanitize fuzz lint bench compare clean

all: build

build: setup-build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) -Dtests=false $(CONFIGURE)
	@ninja -C $(BUILD) wattribute

run: build
	@tools/run $(BUILD)/wattribute

# Every test, on an ordinary build.
test: setup-test
	@tools/run-tests $(BUILD)

# The same tests under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: setup-test
	@tools/run-tests $(BUILD)-sanitize -Db_sanitize=address,undefined

# Searches for inputs that break a parser, for FUZZ_SECONDS each.
FUZZ_SECONDS ?= 30
fuzz: setup-lint
	@tools/run-fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

lint: setup-lint
	@tools/lint

bench: build
	@ninja -C $(BUILD) bench/attribution_cost bench/cgroup_read bench/process_scan
	@bench/exporter-cost $(BUILD)/wattribute
	@$(BUILD)/bench/attribution_cost
	@$(BUILD)/bench/cgroup_read
	@$(BUILD)/bench/process_scan

# Beside Debian's node-exporter, as root; `tools/setup servers` installs it.
compare: build
	@bench/node-exporter $(BUILD)/wattribute

setup-%:
	@tools/setup $*

clean:
	rm -rf $(BUILD) $(BUILD)-sanitize $(BUILD)-fuzz
