# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What has to be installed, by Debian package.  `make deps` installs what is
# missing and asks nothing; it needs root or sudo only when something is.
# On another system it says what to install and goes on.

DEPS_build := gcc libc6-dev make pkg-config libhwloc-dev libjansson-dev \
	libxxhash-dev systemtap-sdt-dev
DEPS_demo := qemu-system-x86 gnuplot-nox
DEPS_check := libcmocka-dev bats mandoc graphviz clang clang-format perl python3 jq \
	g++ binutils util-linux findutils procps strace hyperfine systemd
DEPS_peers := g++ libtbb-dev
# The peers of the task runtime.
DEPS_tasks := libomp-dev
DEPS_vm := qemu-system-x86 cpio binutils gcc libc6-dev patch xz-utils zstd lz4
# A kernel built from Debian's source package.
DEPS_debug := flex bison bc xz-utils libelf-dev libssl-dev perl
# Real programs for the tests; without them these skip.
DEPS_software := default-jdk-headless python3-numpy redis-tools stress-ng
# Allocators for the shim's tests, 1.4 MB on disk.  Apart: other releases of Debian name
# them differently.
DEPS_allocators := libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4
# The shim for 64-bit ARM, and what runs it; without them its test skips.
DEPS_cross := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
# A static program of Go for guests, where no Go is: 81 MB, 470 MB on disk.
DEPS_go := golang-go
# A JVM that is linked for guests, where none can be.
DEPS_jvm := default-jdk-headless
# Apart: where systemd runs, Debian starts a server when it is installed.
DEPS_database := postgresql nginx-light mariadb-server-core mariadb-client-core
# Programs of bench-ahead, beside servers; what is missing is left out of its table.
DEPS_ahead := g++ default-jdk-headless python3-numpy sqlite3 nodejs
# Ranks of the applications, and slow links between them.
DEPS_apps := libopenmpi-dev openmpi-bin iproute2 gnuplot-nox
# For eBPF; without them libumt has its other backends.
DEPS_umt := clang bpftool libbpf-dev
# For the wheel and its tests.
DEPS_bindings := python3-dev python3-venv python3-pytest python3-numpy
# A Rust for the crates and heat in Rust, where no Cargo is: Debian 12 has this one for its
# browsers, 101 MB, 460 MB on disk.  The package cargo there is 0.66, and the lock files need
# 1.78.  Apart: other releases do not have it.  Crates come from their registry.
DEPS_rust := cargo-web
# Debian packages, and what looks at them.
DEPS_deb := build-essential debhelper dh-dkms
DEPS_lint := lintian dkms
# A Debian to try the tree in, where nothing is installed.
DEPS_bare := mmdebstrap debian-archive-keyring git

# What schedulers are compared by, and what scx_simple's own Makefile builds with.  No
# test wants it, so that it is none of the groups, of which a bare Debian is made.
SCHEDULER_PACKAGES := linux-perf clang-19 libelf-dev zlib1g-dev

# The groups that a goal wants: `make deps NEED=build`.
NEED ?= build demo check peers tasks umt vm apps bindings bare

# The groups that tests can do without: these then skip.
NEED_OF_TESTS = software cross $(NEED_OF_GUESTS)
NEED_OF_CRATES = $(if $(shell command -v cargo 2>/dev/null),,rust)
NEED_OF_GUESTS = $(if $(shell command -v go 2>/dev/null),,go) \
	$(if $(shell command -v jlink 2>/dev/null),,jvm)

## deps: install what is missing from Debian packages
.PHONY: deps
deps:
	@scripts/deps $(sort $(foreach group,$(NEED),$(DEPS_$(group))))

# The groups that are named by `packages`.
ALL ?= $(filter DEPS_%,$(.VARIABLES))

## packages: the names of all packages that some goal installs
.PHONY: packages
packages:
	@printf '%s\n' $(sort $(foreach v,$(ALL),$($v)))
