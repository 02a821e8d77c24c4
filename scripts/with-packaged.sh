#!/bin/bash
# Runs a command with the applications installed: `with-packaged.sh DIRECTORY COMMAND…`, with the directory that
# `unpack-packaged.sh` has filled. /usr, /etc and /var have the packages' files on top, for this command only; its
# changes there are discarded at its end. Without root it needs user namespaces.
set -euo pipefail

packaged=$(cd "${1:?which directory}" && pwd)/root
shift
if [ -z "${HOWDAH_PACKAGED_INSIDE:-}" ]; then
    user=()
    [ "$(id -u)" = 0 ] || user=(--user --map-root-user)
    HOWDAH_PACKAGED_INSIDE=1 exec unshare "${user[@]}" --mount --propagation private -- "$0" "$(dirname "$packaged")" "$@"
fi
unset HOWDAH_PACKAGED_INSIDE

# In memory: changes are discarded with the name space.
mount -t tmpfs -o mode=755 tmpfs /mnt
for directory in usr etc var; do
    [ -d "$packaged/$directory" ] || continue
    mkdir -p "/mnt/upper/$directory" "/mnt/work/$directory"
    mount -t overlay overlay -o "lowerdir=$packaged/$directory:/$directory,upperdir=/mnt/upper/$directory,workdir=/mnt/work/$directory" "/$directory"
done
exec "$@"
