#!/bin/bash
# Runs a script on a machine with the packages' files and without systemd: `inside.sh SCRIPT`, in separate namespaces
# (unshare --mount --net), so nothing is visible outside. BUILT has the programs.
set -euo pipefail

mount -t tmpfs -o mode=755 tmpfs /mnt
for directory in usr etc var srv; do
    mkdir -p "/mnt/upper/$directory" "/mnt/work/$directory"
    mount -t overlay overlay -o "lowerdir=/$directory,upperdir=/mnt/upper/$directory,workdir=/mnt/work/$directory" "/$directory"
done
mount -t tmpfs -o mode=755 tmpfs /run
ip link set lo up

PREFIX=/usr scripts/install.sh install server
install -D "$BUILT/howdah-php" /usr/libexec/howdah/howdah-php8.2
# As the package's postinst does.
getent passwd howdah >/dev/null || useradd --system --user-group --home-dir /var/lib/howdah --no-create-home howdah
install -d -o howdah -g adm -m 2750 /var/log/howdah
install -d -o howdah -g howdah -m 0700 /var/lib/howdah
mkdir -p /srv/app
echo "<?php echo 'app';" >/srv/app/index.php

cd /
unset HOME XDG_RUNTIME_DIR TMPDIR
# shellcheck disable=SC1090
source "$1"
