#!/bin/sh
# Compiled kernels came with the image. Numba wants to write beside them, and only /tmp can be written to.
set -eu
[ -d "$NUMBA_CACHE_DIR" ] || cp -r /opt/kernels "$NUMBA_CACHE_DIR"
exec lgcn serve --host 0.0.0.0 --port 8000 "$@"
