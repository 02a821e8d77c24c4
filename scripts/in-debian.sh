#!/bin/bash
# Runs a command of this repository in a separate Debian or Ubuntu: `in-debian.sh SUITE COMMAND…` (SUITE: bookworm,
# trixie; noble, resolute). debootstrap creates the root on first use: ROOTS/SUITE (target/roots), some 300 MB plus
# whatever the command installs. Mounts and processes end with the command, also when it is interrupted or killed, so
# the root can be removed with rm -rf (--one-file-system, to be sure).
#
# The repository has the same path there, with a separate target/ (ROOTS/SUITE.target); this machine's Rust is mounted
# read-only. With BUILT_HERE=1, that target/ also contains programs and crates that this machine has built; files built
# over them are discarded. With FRESH=1, the root starts as debootstrap left it, and all changes except downloaded
# packages are discarded. Needs root and a mirror: MIRROR (and MIRROR_SECURITY), else that of apt on this machine, else
# deb.debian.org. Exits with 3 if a requirement is missing.
set -euo pipefail

suite=${1:?which Debian or Ubuntu: bookworm, trixie, noble or resolute}
shift
here=$(cd "$(dirname "$0")/.." && pwd)
roots=$(realpath -m "${ROOTS:-$here/target/roots}")
root=$roots/$suite
built=$(realpath -m "${CARGO_TARGET_DIR:-$here/target}")
lack() { printf 'in-debian: %s\n' "$*" >&2; exit 3; }

# apt_mirror LABEL: the mirror from which apt on this machine gets this repository's packages.
apt_mirror() { awk -v label="$1" '$2 == label && NF == 2 && /^https?:/ && !found++ { print $1 }' <<<"$targets"; }

case $suite in
noble | resolute)
    mirror=${MIRROR:-http://archive.ubuntu.com/ubuntu} security=${MIRROR_SECURITY:-http://security.ubuntu.com/ubuntu}
    components="main universe" script=gutsy keyring=${KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
    ;;
*)
    targets=
    [ -n "${MIRROR-}" ] || targets=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' 2>/dev/null || true)
    mirror=${MIRROR:-$(apt_mirror Debian)} security=${MIRROR_SECURITY:-$(apt_mirror Debian-Security)}
    mirror=${mirror:-http://deb.debian.org/debian} security=${security:-http://deb.debian.org/debian-security}
    components=main script=sid keyring=${KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
    ;;
esac
export MIRROR=$mirror MIRROR_SECURITY=$security

make_root() {
    local with=()
    rm -rf --one-file-system "$root"
    [[ $mirror != https:* ]] || with=(--include=ca-certificates)
    # minbase: the contents of a container image. It may leave /proc mounted there, which rm -rf must not reach.
    unshare --mount --propagation private debootstrap --variant=minbase --keyring="$keyring" --force-check-gpg "${with[@]}" \
        --components="${components// /,}" "$suite" "$root" "$mirror" "/usr/share/debootstrap/scripts/$script" \
        >"$roots/$suite.log" 2>&1 ||
        { tail -n 3 "$roots/$suite.log" >&2; lack "debootstrap could not make $root: is there a network?"; }
    # After a power failure, the root is created again.
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/force-unsafe-io"
    touch "$root/.complete"
    rm -rf "$root"/var/cache/apt/archives/*.deb
}

if [ "${HOWDAH_IN_DEBIAN-}" != "$suite" ]; then
    [ "$(id -u)" = 0 ] || lack "needs root, for debootstrap and chroot"
    command -v debootstrap >/dev/null || lack "needs debootstrap: apt-get install debootstrap"
    [ -r "$keyring" ] || lack "needs $keyring, the keys that the mirror's lists are signed with (KEYRING)"
    unshare --mount --pid --fork --propagation private true 2>/dev/null || lack "needs name spaces for mounts and processes"
    proxy=
    eval "$(apt-config shell proxy Acquire::http::Proxy 2>/dev/null)"
    [ -z "$proxy" ] || export http_proxy="${http_proxy-$proxy}"
    mkdir -p "$roots"
    # Two runs at once would install into the same root.
    exec 9>"$roots/$suite.lock"
    flock 9
    [ -e "$root/.complete" ] || make_root
    # In the background and in a separate process group, because `unshare` does not end by signals. Everything inside
    # ends with it, and it ends with this script, however that ends. The lock stays here: processes in the root must not
    # inherit it.
    set -m
    HOWDAH_IN_DEBIAN=$suite setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private \
        "$0" "$suite" "$@" </dev/null 9>&- &
    inside=$!
    trap 'kill -KILL $inside 2>/dev/null || true; exit 130' HUP INT TERM
    status=0
    wait $inside || status=$?
    exit $status
fi

layers=$roots/$suite.layers
mkdir -p "$layers"
mount -t tmpfs layers "$layers" || lack "may not mount"
# over LOWER PLACE: mounts the contents of LOWER at PLACE; changes there are discarded.
over() {
    local own
    own=$(mktemp -d "$layers/XXXXXX")
    mkdir "$own/upper" "$own/work"
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$own/upper,workdir=$own/work" "$2" || lack "the kernel has no overlay here"
}
if [ "${FRESH-}" = 1 ]; then
    mkdir "$layers/root"
    over "$root" "$layers/root"
    root=$layers/root
fi
# A separate mount, as a command inside may need name spaces with its own mounts.
[ "${FRESH-}" = 1 ] || mount --bind "$root" "$root"
mkdir -p "$roots/$suite.archives/partial"
mount --bind "$roots/$suite.archives" "$root/var/cache/apt/archives"
# Debian's images delete them.
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
if [ "${BUILT_HERE-}" = 1 ]; then
    # Not target/ itself, which these roots may be in.
    for part in release debug; do
        mkdir -p "$built/$part" "$target/$part"
        over "$built/$part" "$root$here/target/$part"
    done
fi
for place in "${CARGO_HOME:-$HOME/.cargo}" "${RUSTUP_HOME:-$HOME/.rustup}"; do
    [ -d "$place" ] || continue
    mkdir -p "$root$place"
    mount --bind "$place" "$root$place"
    mount -o remount,bind,ro "$root$place"
done
if [ -n "${HOWDAH_SKIPS-}" ]; then
    mkdir -p "$root$(dirname "$HOWDAH_SKIPS")"
    touch "$root$HOWDAH_SKIPS"
    mount --bind "$HOWDAH_SKIPS" "$root$HOWDAH_SKIPS"
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
rm -f "$root"/etc/apt/sources.list.d/*
cat >"$root/etc/apt/sources.list" <<SOURCES
deb $mirror $suite $components
deb $mirror $suite-updates $components
deb $security $suite-security $components
SOURCES
# Services are only programs here; none is started when a package is installed.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
# Packages that an interrupted run has left half installed.
chroot "$root" dpkg --configure --pending >/dev/null

# Variables for a PHP, a target or a temporary directory outside are invalid inside.
unset PHP_CONFIG PHP_VERSION TMPDIR CARGO_TARGET_DIR
# shellcheck disable=SC2016
exec chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$here" "$@"
