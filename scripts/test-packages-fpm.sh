# Tests of howdah-fpm in PHP-FPM's own unit, with Debian's www.conf and a pool of another user, behind nginx, as the guide
# shows it. Part of test-packages-systemd.sh.
# shellcheck shell=bash

# Prints what the pages of both pools print.
pools_say() {
    local port
    for port in 8081 8082; do get "http://127.0.0.1:$port/who.php?port=$port"; done
}

# Requires that the unit runs this program.
fpm_is() {
    local found
    found=$(readlink "/proc/$(main_pid "$unit")/exe")
    [ "$found" = "$1" ] || fail "$unit runs $found"
    found=$(systemctl show --property Type,ActiveState "$unit" | sort | tr '\n' ' ')
    [ "$found" = "ActiveState=active Type=notify " ] || fail "$(systemctl status "$unit")"
}

pools() {
    useradd --system --user-group --no-create-home shop
    cat >"/etc/php/$version/fpm/pool.d/shop.conf" <<'CONF'
[shop]
user = shop
group = shop
listen = /run/php/shop.sock
listen.owner = www-data
listen.mode = 0600
pm = static
pm.max_children = 5
pm.status_path = /status
php_admin_value[memory_limit] = 77M
CONF
    rm -f /etc/nginx/sites-enabled/default
    cat >/etc/nginx/conf.d/pools.conf <<CONF
server { listen 127.0.0.1:8081; root /var/www/html; index index.php;
    location ~ \.php\$ { include snippets/fastcgi-php.conf; fastcgi_pass unix:/run/php/php$version-fpm.sock; } }
server { listen 127.0.0.1:8082; root /var/www/html; index index.php;
    location ~ \.php\$ { include snippets/fastcgi-php.conf; fastcgi_pass unix:/run/php/shop.sock; }
    location = /status { include fastcgi_params; fastcgi_param SCRIPT_FILENAME /status; fastcgi_pass unix:/run/php/shop.sock; } }
CONF
    echo '<?php echo "index";' >/var/www/html/index.php
    echo '<?php sleep(4); echo "slow";' >/var/www/html/slow.php
    cat >/var/www/html/who.php <<'PHP'
<?php error_log("message of $_GET[port]");
echo posix_getpwuid(posix_geteuid())['name'], ' ', PHP_SAPI, ' ', ini_get('memory_limit'), ' ', $_SERVER['SCRIPT_NAME'], "\n";
PHP
}

fpm_tests() {
    local unit=php$version-fpm by_fpm before log=/var/log/php$version-fpm.log
    step "PHP-FPM's unit: pools of two users behind nginx"
    installed nginx "php$version-fpm" logrotate
    pools
    systemctl restart nginx "$unit"
    fpm_is "/usr/sbin/php-fpm$version"
    by_fpm=$(pools_say)
    [ "$(cut -d ' ' -f 1 <<<"$by_fpm" | tr '\n' ' ')" = "www-data shop " ] || fail "PHP-FPM's pools: $by_fpm"
    installed "$server" "$php"
    step "howdah-fpm in the same unit"
    howdah-fpm -t -y "/etc/php/$version/fpm/php-fpm.conf" >/tmp/check 2>&1 || fail "howdah-fpm -t: $(cat /tmp/check)"
    block behind-nginx ini howdah-fpm | sed "s/8\.2/$version/g" >/tmp/drop-in
    edit "$unit" /tmp/drop-in
    systemctl restart "$unit" || fail "$(systemctl status "$unit")"
    fpm_is /usr/bin/howdah
    [ "$(pools_say)" = "$by_fpm" ] || fail "PHP-FPM's pools print: $by_fpm; howdah-fpm's: $(pools_say)"
    grep -q '^pool: *shop$' <(get http://127.0.0.1:8082/status) || fail "status: $(get http://127.0.0.1:8082/status)"
    eventually "no message in $log: $(tail -n 5 "$log")" grep -q 'message of 8082' "$log"
    step "its reload, rotation of its logs, a crash, and a newer package"
    address=http://127.0.0.1:8081
    kept systemctl reload "$unit"
    logrotate -f /etc/logrotate.conf >/tmp/check 2>&1 || fail "logrotate: $(cat /tmp/check)"
    [ -e "$log.1" ] || fail "logrotate has not rotated $log"
    pools_say >/dev/null
    eventually "no message in the new log" grep -q 'message of 8082' "$log"
    kill -KILL "$(main_pid "$unit")"
    # Debian's unit does not restart it.
    eventually "killed, and still active" systemctl is-failed --quiet "$unit"
    systemctl start "$unit" || fail "after a crash: $(systemctl status "$unit")"
    [ "$(pools_say)" = "$by_fpm" ] || fail "after a crash: $(pools_say)"
    before=$(main_pid "$unit")
    kept installed "$newer" "$newer_php"
    said "^$unit.service: process [0-9]* serves"
    [ "$(main_pid "$unit")" != "$before" ] || fail "process $before was not replaced"
    fpm_is /usr/bin/howdah
    [ "$(pools_say)" = "$by_fpm" ] || fail "after the upgrade: $(pools_say)"
    step "and back"
    systemctl revert "$unit" >/tmp/edit 2>&1 || fail "systemctl revert: $(cat /tmp/edit)"
    systemctl restart "$unit"
    fpm_is "/usr/sbin/php-fpm$version"
    [ "$(pools_say)" = "$by_fpm" ] || fail "after reverting to PHP-FPM: $(pools_say)"
    dpkg --purge howdah "howdah-php$version" >/tmp/apt.log 2>&1 || fail "purge: $(cat /tmp/apt.log)"
    systemctl stop "$unit" nginx
}
