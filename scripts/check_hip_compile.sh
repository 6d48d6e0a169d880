#!/bin/sh
# Compiles ggml's HIP backend inside the private ROCm root of make_rocm_root.sh: by default the
# hipBLASLt route and eight representative sources, with `full` the whole plugin, linked.
# Nothing runs: that needs an AMD GPU.
#
#   scripts/check_hip_compile.sh ROOT [full]
#
# GPU_TARGETS (default gfx1100;gfx1151), JOBS.
set -eu

[ $# -ge 1 ] || { echo "usage: $0 ROOT [full]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$1" && pwd)
mode=${2:-sample}
jobs=${JOBS:-$(nproc)}
inside() { "$here/in_rocm_root.sh" "$root" "$@"; }

"$here/stage_ggml.sh" "$root/src"
# shellcheck disable=SC2016  # $ORIGIN is for the loader
inside cmake -S /src/cmake -B /build -GNinja -DCMAKE_BUILD_TYPE=Release \
    -DGGML_SOURCE_DIR=/src/ggml -DBUILD_SHARED_LIBS=ON -DGGML_BACKEND_DL=ON \
    -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DGGML_LLAMAFILE=ON -DGGML_CCACHE=OFF \
    -DGGML_HIP=ON "-DGPU_TARGETS=${GPU_TARGETS:-gfx1100;gfx1151}" \
    -DGGML_HIP_GRAPHS=ON -DGGML_HIP_NO_VMM=ON -DGGML_HIP_HIPBLASLT=ON \
    -DCMAKE_C_COMPILER=/usr/bin/clang-22 -DCMAKE_CXX_COMPILER=/usr/bin/clang++-22 \
    -DCMAKE_HIP_COMPILER=/usr/bin/clang++-22 \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON '-DCMAKE_INSTALL_RPATH=$ORIGIN;$ORIGIN/..' > "$root/configure.log" 2>&1 \
    || { cat "$root/configure.log"; exit 1; }
grep -q 'GEMM through BLASLt: ON' "$root/configure.log" || { echo "the route is not in the build" >&2; exit 1; }

if [ "$mode" = full ]; then
    inside ninja -C /build -j "$jobs" ggml-hip blaslt_checks
    plugin=$root/build/lib/libggml-hip.so
    echo "libggml-hip.so: $(stat -c %s "$plugin") bytes"
    inside llvm-readelf-22 --needed-libs /build/lib/libggml-hip.so
    if inside llvm-readelf-22 --needed-libs /build/lib/libggml-hip.so | grep -E 'libcuda|libcublas'; then
        echo "the plugin needs an NVIDIA library" >&2
        exit 1
    fi
    exit 0
fi

objects=$(inside ninja -C /build -t targets all \
    | sed -n 's/^\(.*ggml-hip\.dir.*\.o\): .*/\1/p' \
    | grep -E '/(ggml-cuda|out-prod|conv2d|conv-transpose-1d|im2col|norm|scale|unary)\.cu\.o$|/blaslt/.*\.cpp\.o$')
count=$(echo "$objects" | wc -l)
[ "$count" -eq 13 ] || { echo "expected 13 objects, found $count:" >&2; echo "$objects" >&2; exit 1; }
# shellcheck disable=SC2086  # one word an object
inside ninja -C /build -j "$jobs" $objects
# ggml's calls must go to the route, each of them.
for name in ggml-cuda out-prod conv2d; do
    object=$(echo "$objects" | grep "/$name.cu.o$")
    symbols=$(inside llvm-nm-22 -u "/build/$object")
    case $symbols in *audiocpp_*) ;; *) echo "$name.cu does not call the route" >&2; exit 1 ;; esac
    if echo "$symbols" | grep -E 'hipblas(S|H)?gemm|hipblas(Gemm|Sgemm|Destroy)'; then
        echo "$name.cu goes around the route" >&2
        exit 1
    fi
done
echo "compiled $count sources for ${GPU_TARGETS:-gfx1100;gfx1151}; GEMM goes through the route"
