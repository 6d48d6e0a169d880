#!/bin/sh
# Copies the part of ggml's pinned source that the CPU, CUDA and HIP backends need, and the files
# beside it that build them (external/ggml), into DIR: about 10 MB, for building on a machine
# without Cargo or a registry.
#
#   scripts/stage_ggml.sh DIR      then: cmake -S DIR/cmake -DGGML_SOURCE_DIR=DIR/ggml ...
#
# GGML_SOURCE_DIR names another ggml source than the crate's.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)
source=${GGML_SOURCE_DIR:-}
if [ -z "$source" ]; then
    carrier=llama-cpp-sys-2
    manifest=$(cargo metadata --format-version=1 --locked --manifest-path "$here/Cargo.toml" \
        | tr ',' '\n' | sed -n "s|.*\"manifest_path\":\"\(.*/$carrier-[^/]*/Cargo.toml\)\".*|\1|p" \
        | head -n 1)
    [ -n "$manifest" ] || { echo "$carrier is not in the dependency graph" >&2; exit 3; }
    source=$(dirname "$manifest")/llama.cpp/ggml
fi
[ -f "$source/include/ggml.h" ] || { echo "no ggml source in $source" >&2; exit 3; }

mkdir -p "$1/ggml/src"
cp -pR "$source/CMakeLists.txt" "$source/cmake" "$source/include" "$1/ggml/"
for part in ggml-cpu ggml-cuda ggml-hip CMakeLists.txt; do
    cp -pR "$source/src/$part" "$1/ggml/src/"
done
find "$source/src" -maxdepth 1 -type f \( -name '*.c' -o -name '*.cpp' -o -name '*.h' -o -name '*.in' \) \
    -exec cp -p {} "$1/ggml/src/" \;
cp -pR "$here/external/ggml/cmake" "$here/external/ggml/blaslt" "$1/"
