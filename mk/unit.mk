# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Tests of core/ have a host of their own, with a scripted clock: it stands
# before libktask.a, so that nothing of lib/ is linked in.
UNITSUPPORT := $(call obj,$(wildcard tests/unit/support/*.c))
UNITTESTBIN := $(filter $(OUT)/tests/unit/%,$(CTESTBIN))

$(UNITTESTBIN): TESTSUPPORT += $(UNITSUPPORT)
$(UNITTESTBIN): $(UNITSUPPORT)
