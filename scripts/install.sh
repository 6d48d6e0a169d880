#!/bin/sh
# Installs audiocpp from a release folder: the programs, and the GPU packs that fit this machine.
# Installs no driver and needs no root for the default place.
#
#   AUDIOCPP_DOWNLOAD_BASE=/path/or/https://server/release scripts/install.sh [OPTION...]
#
#   --prefix DIR     where bin/ and lib/audiocpp/ go [default: ~/.local]
#   --packs LIST     packs to install, with commas; `none`; or `auto` [default: auto]
#   --dry-run        say what would be installed
#
# The release folder has the archives, PACKS (a line each: name backend archive targets) and
# SHA256SUMS; `cargo xtask pack ... --release DIR` makes it.
# AUDIOCPP_SYSTEM_ROOT names another folder to look for /sys, /dev, /proc and /opt in (for tests).
set -eu

say() { printf '%s\n' "$*"; }
fail() { code=$1; shift; printf 'install.sh: %s\n' "$*" >&2; exit "$code"; }

prefix=${HOME:-/root}/.local
packs=auto
dry_run=no
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -ge 2 ] || fail 2 "--prefix needs a folder"; prefix=$2; shift 2 ;;
        --packs) [ $# -ge 2 ] || fail 2 "--packs needs a list"; packs=$2; shift 2 ;;
        --dry-run) dry_run=yes; shift ;;
        -h|--help) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) fail 2 "unknown option $1; --help lists them" ;;
    esac
done
base=${AUDIOCPP_DOWNLOAD_BASE:-}
[ -n "$base" ] || fail 2 "AUDIOCPP_DOWNLOAD_BASE names no release: a folder or a URL"
base=${base#file://}
root=${AUDIOCPP_SYSTEM_ROOT:-}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# fetch NAME: the release's file NAME as $work/NAME.
fetch() {
    case $base in
        http://*|https://*)
            if command -v curl >/dev/null; then curl -fsSL -o "$work/$1" "$base/$1"
            elif command -v wget >/dev/null; then wget -q -O "$work/$1" "$base/$1"
            else fail 3 "downloading needs curl or wget"
            fi || fail 3 "cannot download $base/$1" ;;
        *) [ -f "$base/$1" ] || fail 3 "$base has no $1"
           cp "$base/$1" "$work/$1" ;;
    esac
}
fetch PACKS
fetch SHA256SUMS

# --- The machine

# The kernel's number for a GPU's instruction set, major * 10000 + minor * 100 + stepping, as a
# name with the last two in hexadecimal: 110501 is gfx1151, 90010 is gfx90a. Empty for a processor.
gfx_name() {
    [ "$1" -gt 0 ] 2>/dev/null || return 0
    printf 'gfx%d%x%x\n' $(($1 / 10000)) $(($1 / 100 % 100)) $(($1 % 100))
}

amd_targets() {
    for properties in "$root"/sys/class/kfd/kfd/topology/nodes/*/properties; do
        [ -r "$properties" ] || continue
        gfx_name "$(awk '$1 == "gfx_target_version" { print $2; exit }' "$properties")"
    done
}

# has_pci VENDOR: a display device (PCI class 03) of that vendor.
has_pci() {
    for device in "$root"/sys/bus/pci/devices/*; do
        [ -r "$device/vendor" ] && [ -r "$device/class" ] || continue
        case $(cat "$device/vendor")/$(cat "$device/class") in "$1"/0x03*) return 0 ;; esac
    done
    return 1
}

# has_library NAME: in the loader's cache, or in a ROCm folder.
has_library() {
    for dir in "$root"/opt/rocm/lib "$root"/opt/rocm-*/lib "$root"/opt/rocm/core-*/lib \
        "$root"/usr/lib/x86_64-linux-gnu "$root"/usr/lib64 "$root"/usr/lib; do
        [ -e "$dir/$1" ] && return 0
    done
    [ -z "$root" ] && ldconfig -p 2>/dev/null | grep -q "[[:space:]]$1 " && return 0
    return 1
}

# --- The packs

# hip_pack TARGET: the newest HIP pack with kernels for the target whose runtime is installed.
hip_pack() {
    awk '$2 == "hip"' "$work/PACKS" | sort -t v -k 2 -n -r | while read -r name _ _ targets; do
        case ",$targets," in *",$1,"*|*",$1:"*) ;; *) continue ;; esac
        if has_library "libamdhip64.so.${name##*_v}"; then say "$name"; break; fi
    done
}

# The HIP packs that would fit if their runtime were there.
hip_packs_for() {
    awk -v want="$1" '$2 == "hip" { n = split($4, t, ","); for (i = 1; i <= n; i++) { sub(/:.*/, "", t[i]); if (t[i] == want) print $1 } }' "$work/PACKS"
}

first_of() { awk -v want="$1" '$2 == want { print $1 }' "$work/PACKS" | sort -t v -k 2 -n -r | head -n 1; }

chosen=
choose() { case " $chosen " in *" $1 "*) ;; *) chosen="$chosen $1" ;; esac; }

choose_amd() {
    targets=$(amd_targets | sort -u)
    if [ -z "$targets" ]; then
        has_pci 0x1002 && say "AMD GPU: found, but the kernel's compute driver (amdgpu with KFD) is not active. It will run once the driver is; until then Vulkan or the CPU is used."
        return 0
    fi
    for target in $targets; do
        pack=$(hip_pack "$target")
        if [ -n "$pack" ]; then
            say "AMD GPU $target: pack $pack"
            choose "$pack"
        elif [ -n "$(hip_packs_for "$target")" ]; then
            say "AMD GPU $target: pack $(hip_packs_for "$target" | head -n 1) fits, but its ROCm runtime is not installed. Install ROCm and run this again; until then Vulkan or the CPU is used."
        else
            say "AMD GPU $target: no pack of this release has kernels for it; Vulkan or the CPU is used."
        fi
    done
    if [ -e "$root/dev/kfd" ] && { [ ! -r "$root/dev/kfd" ] || [ ! -w "$root/dev/kfd" ]; }; then
        say "No access to /dev/kfd: add yourself to its group (sudo usermod -aG render,video \$USER) and log in again."
    fi
}

choose_nvidia() {
    has_pci 0x10de || return 0
    pack=$(first_of cuda)
    if [ -z "$pack" ]; then say "NVIDIA GPU: this release has no CUDA pack."
    elif [ -e "$root/proc/driver/nvidia/version" ]; then say "NVIDIA GPU: pack $pack"; choose "$pack"
    else say "NVIDIA GPU: found, but NVIDIA's driver is not active. Install it and run this again."
    fi
}

choose_vulkan() {
    [ -z "$chosen" ] || return 0
    pack=$(first_of vulkan)
    [ -n "$pack" ] && ls "$root"/dev/dri/renderD* >/dev/null 2>&1 || return 0
    has_library libvulkan.so.1 || { say "Vulkan: no loader (libvulkan.so.1) is installed."; return 0; }
    say "GPU through Vulkan: pack $pack"
    choose "$pack"
}

case $packs in
    auto) choose_amd; choose_nvidia; choose_vulkan ;;
    none) ;;
    *) for name in $(printf '%s' "$packs" | tr ',' ' '); do
           awk -v want="$name" '$1 == want { found = 1 } END { exit !found }' "$work/PACKS" \
               || fail 2 "the release has no pack $name; it has: $(awk '{ printf "%s ", $1 }' "$work/PACKS")"
           choose "$name"
       done ;;
esac
cpu=$(first_of cpu)
[ -n "$cpu" ] || fail 3 "the release has no base (a pack of backend cpu)"
# The base holds the CPU pack.
list=$cpu
for name in $chosen; do [ "$name" = "$cpu" ] || list="$list $name"; done
say "install: $list -> $prefix"
[ "$dry_run" = no ] || exit 0

# --- Unpacking: everything beside its place first, then renamed into it.

mkdir -p "$prefix/lib" "$prefix/bin"
stage=$(mktemp -d "$prefix/lib/.audiocpp.XXXXXX")
trap 'rm -rf "$work" "$stage"' EXIT
for name in $list; do
    archive=$(awk -v want="$name" '$1 == want { print $3; exit }' "$work/PACKS")
    fetch "$archive"
    sum=$(awk -v want="$archive" '$2 == want { print $1; exit }' "$work/SHA256SUMS")
    [ -n "$sum" ] || fail 4 "SHA256SUMS has no line for $archive"
    [ "$(sha256sum "$work/$archive" | cut -d ' ' -f 1)" = "$sum" ] || fail 4 "$archive does not have the checksum of SHA256SUMS; nothing was installed"
    tar -xzf "$work/$archive" -C "$stage" || fail 4 "$archive cannot be unpacked; nothing was installed"
    rm "$work/$archive"
done
for list in "$stage"/lib/audiocpp/*/FILES.sha256; do
    [ -f "$list" ] || continue
    (cd "$(dirname "$list")" && sha256sum --quiet -c FILES.sha256) || fail 4 "$(dirname "$list") is damaged; nothing was installed"
done
# The packs of an older release never stay beside newer programs.
if [ -d "$prefix/lib/audiocpp" ]; then mv "$prefix/lib/audiocpp" "$stage/old"; fi
mv "$stage/lib/audiocpp" "$prefix/lib/audiocpp"
for program in "$stage"/bin/*; do
    [ -f "$program" ] || continue
    mv "$program" "$prefix/bin/"
done
say "installed. Programs are in $prefix/bin; \`audiocpp_cli devices\` lists what they can use."
