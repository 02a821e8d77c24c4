# Tests of the guide's installation of WordPress with HTTPS: its blocks are run literally, then WordPress is set up and
# used. Part of test-packages-systemd.sh.
# shellcheck shell=bash

blog=https://blog.localhost

# Runs commands of a guide in the directory of the packages.
as_shown() {
    (
        cd "$packages"
        # shellcheck disable=SC2317
        apt-get() { command apt-get -y -qq "$@"; }
        set -e
        eval "$1"
    ) >/tmp/shown 2>&1 || fail "$1: $(cat /tmp/shown)"
}

# Sets up WordPress and logs in, as in a browser.
set_up() {
    get "$blog/wp-admin/install.php?step=2" -d weblog_title=Proof -d user_name=admin -d admin_password=secret -d pw_weak=1 \
        -d admin_password2=secret -d admin_email=admin@blog.localhost -d blog_public=0 >/tmp/page
    grep -q 'Success' /tmp/page || fail "set-up: $(cat /tmp/page)"
    get -b /tmp/jar -c /tmp/jar "$blog/wp-login.php" >/dev/null
    get -b /tmp/jar -c /tmp/jar "$blog/wp-login.php" -d log=admin -d pwd=secret -d testcookie=1 -o /dev/null
    get -b /tmp/jar "$blog/wp-admin/" >/tmp/page
    grep -q 'Dashboard' /tmp/page || fail "log-in: $(cat /tmp/page)"
}

# Uploads a picture, which is then a file that the server sends.
upload() {
    local nonce url
    get -b /tmp/jar "$blog/wp-admin/media-new.php" >/tmp/page
    nonce=$(sed -n 's/.*name="_wpnonce" value="\([0-9a-f]*\)".*/\1/p' /tmp/page | sed -n '$p')
    cp /usr/share/wordpress/wp-admin/images/w-logo-blue.png /tmp/picture.png
    get -b /tmp/jar "$blog/wp-admin/async-upload.php" -F "_wpnonce=$nonce" -F action=upload-attachment \
        -F async-upload=@/tmp/picture.png >/tmp/page
    url=$(grep -o "$blog/wp-content/uploads/[^\"]*picture[^\"]*png" <(sed 's|\\/|/|g' /tmp/page) | sed -n '$p' || true)
    [ -n "$url" ] || fail "upload: $(cat /tmp/page)"
    get "$url" | cmp - /tmp/picture.png || fail "$url is not the picture"
}

wordpress_tests() {
    local warnings theme since
    step "from nothing to WordPress with HTTPS, as the guide shows"
    as_shown "$(block wordpress sh mariadb-server | sed "s/8\.2/$version/g")"
    ! dpkg-query -W -f '${Status}' apache2 2>/dev/null | grep -q ' installed' || fail "another web server was installed"
    block wordpress toml blog.localhost >/etc/howdah/conf.d/blog.toml
    block wordpress ini wordpress >/tmp/drop-in
    edit howdah /tmp/drop-in
    as_shown "$(block wordpress sh 'howdah trust')"
    grep -q '^location: .*/wp-admin/install.php' /tmp/shown || fail "not redirected to the set-up: $(cat /tmp/shown)"
    step "its set-up, log-in, upload, and pages from the boot"
    set_up
    sleep 1
    since=$(date +%s)
    upload
    get "$blog/" >/tmp/page
    grep -q '<title>Proof' /tmp/page || fail "the front page: $(head -n 20 /tmp/page)"
    theme=$(basename /var/lib/wordpress/wp-content/themes/twenty*)
    get -f "$blog/wp-content/themes/$theme/style.css" -o /dev/null || fail "no file of the theme $theme"
    eventually "no page from the boot" boots
    warnings=$(journalctl --no-pager -o cat -u howdah --since "@$since" | grep -E ' (WARN|ERROR) ' || true)
    [ -z "$warnings" ] || fail "warnings: $warnings"
}

# The pool that boots has served a page.
boots() {
    get "$blog/" >/dev/null
    howdah status >/tmp/status
    grep -q 'requests [1-9]' <(sed -n '/pool blog.localhost.wordpress (snapshot/,/requests/p' /tmp/status)
}
