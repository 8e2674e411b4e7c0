# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Python and Rust.  The wheel holds the library, linked into its extension; the
# crates hold its sources, which Cargo compiles.

PY := ktask/bindings/python
RUST := ktask/bindings/rust
NATIVE := $(OUT)/python/_native.abi3.so
WHEEL := $(OUT)/python/wheel

# Only its initialization is seen from outside: a program that is linked with
# libktask has a library of its own.
$(NATIVE): $(wildcard $(PY)/*.c $(PY)/*.h) $(OUT)/libktask.a mk/bindings.mk \
		| $(call need,python)
	$(make_directory)
	$(call say,LD)
	$(Q)$(CC) $(KT_CFLAGS) -Iktask/include $(PYTHON_CFLAGS) $(CFLAGS) \
		-shared -Wl,-z,nodelete -Wl,--exclude-libs,ALL -Wl,-S -o $@ \
		$(wildcard $(PY)/*.c) $(OUT)/libktask.a -ldl $(LDFLAGS)

# The name of a wheel has its platform, which is known only when it was made.
$(WHEEL): $(NATIVE) $(wildcard $(PY)/*.py $(PY)/*.toml $(PY)/*.md \
		$(PY)/ktask/*) | $(call need,python)
	$(call say,PY)
	$(Q)rm -f $(@D)/*.whl
	$(Q)$(PYTHON) -B $(PY)/wheel_backend.py $(NATIVE) $(VERSION) $(@D) >$@.new
	$(Q)mv $@.new $@

## wheel: the Python package ktask, as build/python/ktask-*.whl
.PHONY: wheel
wheel: $(WHEEL)
	@echo $(OUT)/python/$$(cat $(WHEEL))

## bench-python: what a call from Python costs, and the import
.PHONY: bench-python
bench-python: $(WHEEL)
	$(Q)rm -rf $(OUT)/python/bench
	$(Q)$(PYTHON) -m zipfile -e $(OUT)/python/$$(cat $(WHEEL)) $(OUT)/python/bench
	$(Q)PYTHONPATH=$(OUT)/python/bench $(PYTHON) $(PY)/bench/overhead.py

## bench-torch: pinned tensors by torch and by ktask, with a GPU and torch (BENCH='8192 5': MiB, rounds)
.PHONY: bench-torch
bench-torch: $(WHEEL)
	$(Q)rm -rf $(OUT)/python/bench
	$(Q)$(PYTHON) -m zipfile -e $(OUT)/python/$$(cat $(WHEEL)) $(OUT)/python/bench
	$(Q)PYTHONPATH=$(OUT)/python/bench $(PYTHON) $(PY)/bench/pinned_tensors.py $(BENCH)

# PyPI's torch for Linux has CUDA's libraries with it: 5 GiB.
TORCH_ENV := $(OUT)/python/env-torch

$(TORCH_ENV)/made: | $(call need,python)
	$(Q)rm -rf $(@D)
	$(Q)$(PYTHON) -m venv --system-site-packages $(@D)
	$(Q)touch $@

## check-torch: the wheel's tests with the newest torch of PyPI (downloads 3 GiB)
.PHONY: check-torch
check-torch: export KTASK_TEST_TORCH = $(abspath $(TORCH_ENV))
check-torch: $(WHEEL) $(TORCH_ENV)/made
	+@$(MAKE) --no-print-directory deps NEED=bindings
	$(TORCH_ENV)/bin/python -m pip --no-input --disable-pip-version-check install \
		--no-cache-dir -q --upgrade -r $(PY)/requirements.txt torch
	$(call run,ktask/tests/bindings/the-wheel-passes-its-tests.t)

# make bench-rust BENCH='4096 9'
## bench-rust: a guest's memory by one thread and by two (BENCH='4096 9': MiB, rounds)
.PHONY: bench-rust
bench-rust:
	$(Q)cd $(RUST) && cargo build -q --release --locked --example guest_memory \
		--target-dir $(abspath $(OUT))/rust
	$(Q)$(PYTHON) $(RUST)/bench/guest_memory.py \
		$(OUT)/rust/release/examples/guest_memory $(BENCH)

# ---- what others compile ----

# Flags that the sources rely on, and those that they are found with.
LIST_FLAGS := $(filter -std=% -f% -pthread -D_GNU_SOURCE,$(KT_CFLAGS) \
	$(INC_ktask/ops))
LIST_INCLUDES := $(patsubst -I%,%,$(filter -I%,$(INC_ktask) $(INC_ktask/user)))
LIST_HEADERS := $(wildcard $(addsuffix *.h,common/ $(addsuffix /ktask/,$(LIST_INCLUDES)) \
	$(addsuffix /,$(LIST_INCLUDES)) $(sort $(dir $(CORE) $(ENGINE) $(LIB) $(OPS)))))

print-library-list = printf 'version %s\n' '$(VERSION)' && \
	printf 'flag %s\n' $(LIST_FLAGS) && printf 'include %s\n' $(LIST_INCLUDES) && \
	printf 'header %s\n' $(LIST_HEADERS) && printf 'source %s\n' $(LIBSRC)

## library-list: what libktask is compiled of, for other build systems
.PHONY: library-list
library-list:
	@$(print-library-list)

# With the headers that the sources include, so that the crate needs no tree.
CRATES := $(OUT)/crates

## crates: the Rust crates ktask-sys and ktask, with the C sources inside
.PHONY: crates
crates: | $(call need,cc)
	$(Q)rm -rf $(CRATES)
	$(Q)mkdir -p $(CRATES)/ktask-sys/csrc
	$(Q)cp -r $(RUST)/Cargo.toml $(RUST)/Cargo.lock $(RUST)/ktask-sys \
		$(RUST)/ktask $(CRATES)
	$(Q){ $(print-library-list); } >$(CRATES)/ktask-sys/csrc/library.list
	$(Q)for file in $$($(CC) -MM $(KT_CFLAGS) $(INC_ktask) $(INC_ktask/user) \
		$(LIBSRC) | tr -d '\\' | \
		sed 's/^[^:]*://'); do \
		echo "$$file"; done | sort -u | \
		tar cf - -T - | tar xf - -C $(CRATES)/ktask-sys/csrc
	@echo $(CRATES)
