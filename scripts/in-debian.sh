#!/bin/bash
# Runs a command of this repository in a Debian of its own: `in-debian.sh SUITE COMMAND…` (SUITE: bookworm, trixie). The root is
# made by debootstrap on first use and kept: ROOTS/SUITE (target/roots), some 300 MB, and what the command installs. Mounts
# and processes end with the command, so it can be removed with rm -rf (--one-file-system, to be sure).
#
# The repository is there under the same path, with a target/ of its own (ROOTS/SUITE.target), and so is this machine's
# Rust. With FRESH=1 the root is as debootstrap left it and forgets what is done in it, but for downloaded packages. Needs
# root, debootstrap and a Debian mirror (MIRROR). Status 3 where one of these is missing.
set -euo pipefail

suite=${1:?which Debian: bookworm or trixie}
shift
here=$(cd "$(dirname "$0")/.." && pwd)
roots=$(realpath -m "${ROOTS:-$here/target/roots}")
root=$roots/$suite
lack() { printf 'in-debian: %s\n' "$*" >&2; exit 3; }

if [ "${HOWDAH_IN_DEBIAN-}" != "$suite" ]; then
    [ "$(id -u)" = 0 ] || lack "needs root, for debootstrap and chroot"
    command -v debootstrap >/dev/null || lack "needs debootstrap: apt-get install debootstrap"
    if [ ! -e "$root/.complete" ]; then
        rm -rf --one-file-system "$root"
        mkdir -p "$roots"
        # minbase: what a container image has, too. It may leave /proc mounted there, which nobody is to meet with rm -rf.
        unshare --mount --propagation private debootstrap --variant=minbase "$suite" "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$roots/$suite.log" 2>&1 ||
            { tail -n 3 "$roots/$suite.log" >&2; lack "debootstrap could not make $root: is there a network?"; }
        touch "$root/.complete"
        rm -rf "$root"/var/cache/apt/archives/*.deb
    fi
    HOWDAH_IN_DEBIAN=$suite exec unshare --mount --pid --fork --kill-child --propagation private "$0" "$suite" "$@"
fi

if [ "${FRESH-}" = 1 ]; then
    layers=$roots/$suite.layers
    mkdir -p "$layers"
    mount -t tmpfs layers "$layers"
    mkdir "$layers/upper" "$layers/work" "$layers/root"
    mount -t overlay overlay -o "lowerdir=$root,upperdir=$layers/upper,workdir=$layers/work" "$layers/root"
    root=$layers/root
fi
mkdir -p "$roots/$suite.archives/partial"
mount --bind "$roots/$suite.archives" "$root/var/cache/apt/archives"
# Debian's images throw them away.
echo 'APT::Keep-Downloaded-Packages "true"; Acquire::Retries "3"; APT::Sandbox::User "root";' >"$root/etc/apt/apt.conf.d/90howdah"

target=$roots/$suite.target
mkdir -p "$target" "$root$here"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mount -t tmpfs run "$root/run"
mount --bind "$here" "$root$here"
mkdir -p "$here/target"
mount --bind "$target" "$root$here/target"
for place in "${CARGO_HOME:-$HOME/.cargo}" "${RUSTUP_HOME:-$HOME/.rustup}"; do
    [ -d "$place" ] || continue
    mkdir -p "$root$place"
    mount --bind "$place" "$root$place"
done
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mirror=${MIRROR:-http://deb.debian.org/debian}
cat >"$root/etc/apt/sources.list" <<SOURCES
deb $mirror $suite main
deb $mirror $suite-updates main
deb ${MIRROR_SECURITY:-http://deb.debian.org/debian-security} $suite-security main
SOURCES
# Services are programs here; nothing is started when a package is installed.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"

# What chooses a PHP, a target or a temporary directory outside means nothing in there.
unset PHP_CONFIG PHP_VERSION TMPDIR CARGO_TARGET_DIR
# shellcheck disable=SC2016
exec chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$here" "$@"
