# SPDX-License-Identifier: GPL-2.0-only OR MIT
# `ktask run` looks for the shim beside itself and then where it is installed.
$(OBJ)/cli/cmd_run.o: KT_CFLAGS += -DKTASK_LIBDIR='"$(LIBDIR)"'
