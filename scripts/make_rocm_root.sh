#!/bin/sh
# Makes a private root folder with ROCm 7.2.4, clang, CMake and ninja out of Debian packages, to
# compile the HIP pack on a machine without ROCm. Nothing is installed on the host: packages are
# unpacked, no maintainer script runs, and apt keeps its state beside the root.
#
#   scripts/make_rocm_root.sh DIR          about 1.4 GB on disk, 750 MB downloaded
#   chroot DIR clang++-22 --version        needs root, or `unshare --map-root-user`
#
# The archive's address comes from the host's own apt sources.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
root=$(cd "$1" && pwd)
stamp="$root/.complete"
pins="$here/rocm_root/packages.txt"
link_only="$here/rocm_root/link_only.txt"
want=$(cat "$pins" "$link_only" | sha256sum | cut -d' ' -f1)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
    echo "$root is complete"
    exit 0
fi
for tool in apt-get dpkg-deb tar; do
    command -v "$tool" >/dev/null || { echo "$0 needs $tool: it runs on Debian and its kin" >&2; exit 3; }
done

archive=$(apt-get indextargets --format '$(REPO_URI)' \
    'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1)
[ -n "$archive" ] || {
    echo "the host's apt sources name no Debian archive (or 'apt-get update' never ran)" >&2; exit 3; }
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# apt with its own sources, lists, cache and an empty package database; proxy and authentication
# settings stay the host's.
apt="$root.apt"
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
: > "$apt/status"
for suite in sid experimental; do
    echo "deb [arch=amd64 signed-by=$keyring] $archive $suite main"
done > "$apt/sources.list"
mkdir -p "$apt/none"
private() {
    command=$1; shift
    "$command" -qq \
        -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=- \
        -o Dir::State::Lists="$apt/lists" -o Dir::State::status="$apt/status" \
        -o Dir::Cache="$apt" -o Dir::Cache::archives="$apt/archives" \
        -o Dir::Etc::Preferences=- -o Dir::Etc::PreferencesParts="$apt/none" \
        -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Sandbox::User= \
        -o Acquire::Languages=none -o Acquire::Check-Valid-Until=false "$@"
}
private apt-get update

cd "$apt/archives"
# shellcheck disable=SC2046  # one word a package
private apt-get download $(grep -v '^#' "$pins")
mkdir -p "$root/usr" "$root/dev" "$root/tmp" "$root/proc"
for dir in bin sbin lib lib64; do
    mkdir -p "$root/usr/$dir"
    [ -e "$root/$dir" ] || ln -s "usr/$dir" "$root/$dir"
done
for package in *.deb; do
    dpkg-deb -x "$package" "$root"
    rm "$package"
done
grep -v '^#' "$link_only" | while read -r pin; do
    private apt-get download "$pin"
    dpkg-deb --fsys-tarfile ./*.deb | tar -x -C "$root" --wildcards './usr/lib/*/lib*.so*'
    rm ./*.deb
done
[ -e "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3 2>/dev/null || : > "$root/dev/null"
# Where clang looks for ROCm's device libraries; Debian keeps them with the compiler.
for bitcode in "$root"/usr/lib/llvm-*/lib/clang/*/amdgcn; do
    [ -e "$root/usr/amdgcn" ] || ln -s "${bitcode#"$root"/usr/}" "$root/usr/amdgcn"
done
[ -e "$root/bin/sh" ] || ln -s dash "$root/usr/bin/sh"
echo "$want" > "$stamp"
rm -rf "$apt"
echo "$root is complete: $(du -sh "$root" | cut -f1)"
