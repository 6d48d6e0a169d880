#!/bin/sh
# Runs a command inside the root that make_rocm_root.sh made, with /proc mounted for that command
# alone. As an ordinary user it needs user namespaces.
#
#   scripts/in_rocm_root.sh DIR COMMAND [ARG...]
set -eu

[ $# -ge 2 ] || { echo "usage: $0 DIR COMMAND [ARG...]" >&2; exit 2; }
[ -f "$1/.complete" ] || { echo "$1 is not a root that make_rocm_root.sh finished" >&2; exit 2; }
map=
[ "$(id -u)" = 0 ] || map=--map-root-user
# shellcheck disable=SC2016  # expanded by the inner shell
exec unshare $map --mount --pid --fork sh -c '
    mount -t proc proc "$1/proc"
    root=$1; shift
    exec env -i PATH=/usr/bin:/usr/sbin ROCM_PATH=/usr LANG=C.UTF-8 HOME=/tmp chroot "$root" "$@"' \
    sh "$@"
