#!/bin/sh
# Builds ggml's CUDA backend with the BLASLt route (cuBLASLt there) and runs the route's checks on
# the NVIDIA GPU of this machine. Needs nvcc, CMake and ninja; no Cargo, no network.
#
#   scripts/stage_ggml.sh STAGED                  on a machine with Cargo: about 10 MB
#   scripts/check_blaslt_cuda.sh STAGED [BUILD]   on the machine with the GPU
#
# CUDA_ARCH (default 90-real) names the GPU's architecture for CMake; FA=OFF leaves the
# flash-attention kernels out, which halves the build; JOBS the number of compilers.
set -eu

[ $# -ge 1 ] || { echo "usage: $0 STAGED [BUILD]" >&2; exit 2; }
staged=$(cd "$1" && pwd)
build=${2:-$staged/build}
[ -f "$staged/ggml/include/ggml.h" ] || { echo "$staged was not made by stage_ggml.sh" >&2; exit 2; }
[ -d /usr/local/cuda/bin ] && PATH=/usr/local/cuda/bin:$PATH

start=$(date +%s)
# shellcheck disable=SC2016  # $ORIGIN is for the loader
cmake -S "$staged/cmake" -B "$build" -GNinja -DCMAKE_BUILD_TYPE=Release \
    -DGGML_SOURCE_DIR="$staged/ggml" -DBUILD_SHARED_LIBS=ON -DGGML_BACKEND_DL=ON \
    -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DGGML_LLAMAFILE=ON -DGGML_CCACHE=OFF \
    -DGGML_CUDA=ON -DGGML_CUDA_CUBLASLT=ON -DGGML_CUDA_GRAPHS=ON -DGGML_CUDA_NCCL=OFF \
    -DGGML_CUDA_FA="${FA:-ON}" -DGGML_CUDA_FA_QUANTS=f16-f16 \
    -DCMAKE_CUDA_ARCHITECTURES="${CUDA_ARCH:-90-real}" \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH='$ORIGIN' > "$build.configure.log" 2>&1 \
    || { cat "$build.configure.log"; exit 1; }
cmake --build "$build" -j "${JOBS:-$(nproc)}" > "$build.log" 2>&1 || { tail -n 60 "$build.log"; exit 1; }
cmake --build "$build" --target blaslt_checks >> "$build.log" 2>&1 || { tail -n 60 "$build.log"; exit 1; }
echo "built in $(( $(date +%s) - start )) s: $(du -sh "$build/lib/libggml-cuda.so" | cut -f1) libggml-cuda.so"

failed=0
check() {
    echo "== $*"
    env "$@" || failed=1
}
lib=$build/lib
check "$lib/capture_check"
check AUDIOCPP_BLASLT_POINTER_ARRAY=runs "$lib/capture_check"
check "$lib/gemm_check" "$lib"
check AUDIOCPP_BLASLT_POINTER_ARRAY=runs "$lib/gemm_check" "$lib" expect-runs
check AUDIOCPP_BLASLT=0 "$lib/gemm_check" "$lib" expect-off
exit $failed
