# Functions of the scripts that test the guides' blocks, on the machine that `inside.sh` has set up.
# shellcheck shell=bash

for user in shop blog ops; do
    getent passwd $user >/dev/null || useradd --system --user-group --no-create-home $user
done
ip addr add 10.0.0.5/32 dev lo
mkdir -p /run/systemd/journal
python3 -c 'import socket, time
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind("/run/systemd/journal/socket")
time.sleep(600)' &
getent group media >/dev/null || groupadd --system media
mkdir -p /srv/tried /run/secrets
openssl rand -base64 32 >/run/secrets/mercure
echo shop:key:secret >/run/secrets/pusher
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
    -addext "subjectAltName=DNS:localhost" -keyout /srv/key.pem -out /srv/cert.pem 2>/dev/null

# A directory for the settings of one block.
machine() {
    mkdir -p "/srv/tried/$1/conf.d"
    cd "/srv/tried/$1" || exit
    cp /etc/howdah/howdah.toml .
    make_up index.php
    make_up public/index.php
}

# For a site with a certificate that is shown without the settings of its server.
with_https() { sed -i 's|^listen = .*|listen = [":80", "https://:443"]|' howdah.toml; }

# Creates a file or directory named by settings.
make_up() {
    [ ! -e "$1" ] || return 0
    mkdir -p "$(dirname "$1")"
    case $1 in
        *.key) install -m 0600 -o howdah /srv/key.pem "$1" ;;
        *.pem) cp /srv/cert.pem "$1" ;;
        *.php) echo "<?php echo 'made up';" >"$1" ;;
        *.*) ;;
        *) mkdir -p "$1" && echo "<?php echo 'made up';" >"$1/index.php" ;;
    esac
}

check_one() {
    cd "/srv/tried/$1" || exit
    status=0
    HOWDAH_ALLOW_ROOT=1 howdah check --config howdah.toml >out 2>&1 || status=$?
    echo "#=> $status" >>out
}
export -f check_one

check_all() {
    # shellcheck disable=SC2012
    ls /srv/tried | xargs -P 4 -I {} bash -c 'check_one {}'
    for directory in /srv/tried/*; do
        echo "=== $(basename "$directory")"
        cat "$directory/out"
    done
}

# Starts a server in the background and waits until it serves. Without settings of a service PHP runs as www-data.
start() {
    stop_server
    cp /dev/null /run/log
    case " $* " in
        *" --config "*) command howdah "$@" >/run/log 2>&1 & ;;
        *) HOWDAH_USER=www-data command howdah "$@" >/run/log 2>&1 & ;;
    esac
    for _ in $(seq 600); do
        for socket in /run/howdah/admin.sock /run/howdah-*.sock; do
            ! curl -sf --unix-socket "$socket" http://howdah/health >/dev/null || return 0
        done
        kill -0 $! 2>/dev/null || break
        sleep 0.05
    done
    cat /run/log
    return 1
}

stop_server() {
    pkill -x howdah || true
    while pgrep -x howdah >/dev/null; do sleep 0.02; done
}

# Commands as on a machine with a terminal and systemd.
howdah() {
    case $1 in
        serve | dev) start "$@" ;;
        top) command howdah "$@" --once ;;
        check | doctor)
            case " $* " in
                *" --config "*) command howdah "$@" ;;
                *) HOWDAH_USER=www-data command howdah "$@" ;;
            esac
            ;;
        *) command howdah "$@" ;;
    esac
}

systemctl() {
    case $1 in
        start | restart) howdah serve --config /etc/howdah/howdah.toml ;;
        stop | reload) command howdah "$1" --config /etc/howdah/howdah.toml ;;
        status) command howdah status --config /etc/howdah/howdah.toml ;;
        *) return 1 ;;
    esac
}

journalctl() { cat /run/log; }
sudo() { [ "$1" != -u ] || shift 2; "$@"; }
tail() { command tail "${@/-f/-n1}"; }
# Finding nothing is not an error here.
grep() { command grep "$@" || [ $? = 1 ]; }

# Begins a page: the packaged server, no sites, an application in /srv/shop and in /srv/app.
page() {
    page=$1
    cd /srv || exit
    rm -rf /etc/howdah/conf.d/* /srv/shop /srv/app
    cp /srv/packaged.toml /etc/howdah/howdah.toml
    for project in /srv/shop /srv/app; do
        made_up_project $project
        mkdir -p $project/var $project/vendor
        cp /srv/autoload.php $project/vendor/autoload.php
    done
    cd /srv/shop || exit
    pwd >/run/directory
    ! declare -F "prepare_${page//-/_}" >/dev/null || "prepare_${page//-/_}"
}

write_file() {
    case $1 in
        /*) ;;
        *) set -- "/srv/shop/$1" ;;
    esac
    mkdir -p "$(dirname "$1")"
    cat >"$1"
}

# block AT NUMBER LANGUAGE COMMANDS: the commands of the page's block, after what `before_PAGE_NUMBER` does. The directory stays for
# the blocks that follow.
block() {
    local name=before_${page//-/_}_$2
    set +e
    echo "=== $1"
    # A block that starts a server needs none before.
    [ "$2" != 1 ] || [[ "$4" == *"howdah serve"* ]] || systemctl start howdah
    ! declare -F "$name" >/dev/null || "$name"
    (
        [ "$3" = console ] || set -e
        eval "$4"
        pwd >/run/directory
    ) 2>&1 </dev/null
    echo "#=> $?"
    cd "$(cat /run/directory)" || exit
}

export HOME=/srv/home
mkdir -p $HOME
cp /etc/howdah/howdah.toml /srv/packaged.toml
cat >/srv/autoload.php <<'END'
<?php
class App
{
    public function handle() { echo 'handled'; }
    public function terminate() {}
}
END

# Assumptions of pages: `prepare_PAGE` before the page, `before_PAGE_NUMBER` before one of its blocks.

made_up_project() {
    mkdir -p "$1/public"
    echo "<?php echo 'made up';" | tee "$1/index.php" >"$1/public/index.php"
}

with_settings() {
    cat >/etc/howdah/howdah.toml
    sed '/^listen\|^root/d' /srv/packaged.toml >>/etc/howdah/howdah.toml
}

before_README_1() { cd /srv/app || exit; }
before_acme_1() { mkdir -p ~/.local/state; ln -sfn /var/lib/howdah-www-data ~/.local/state/howdah; }
prepare_applications() { made_up_project /usr/share/phpmyadmin; }
prepare_wordpress() { made_up_project /srv/wordpress; }

prepare_deploy() {
    for release in 41 42; do made_up_project /srv/app/releases/$release; done
    ln -sfn releases/41 /srv/app/current
    printf '%s\n' 'listen = ["127.0.0.1:8080"]' 'root = "/srv/app/current/public"' 'root_links = "reload"' | with_settings
}

before_deploy_2() {
    echo '<?php http_response_code(500);' | tee /srv/app/releases/4?/public/index.php >/srv/shop/index.php
    printf 'hosts = ["shop.example"]\nroot = "/srv/shop"\n' >/etc/howdah/conf.d/shop.toml
    printf '[deploy]\ncheck = ["shop.example/health"]\n' >>/etc/howdah/howdah.toml
}

before_doctor_1() {
    made_up_project ~/src/shop
    echo / >urls.txt
    echo '127.0.0.1 - - [28/Nov/2026:20:00:00 +0000] "GET / HTTP/1.1" 200 9' >/var/log/howdah/access.log
}

before_doctor_2() { howdah doctor --quiet --json last.json; }

before_reload_1() {
    printf '%s\n' 'listen = ["127.0.0.1:8080"]' 'threads = 1' 'workers = 2' 'http.max_body = "8M"' | with_settings
    start serve --config /etc/howdah/howdah.toml
    printf '%s\n' 'listen = ["127.0.0.1:8080", "127.0.0.1:8081"]' 'threads = 4' 'workers = 3' 'http.max_body = "20M"' |
        with_settings
    printf 'hosts = ["shop.example"]\nroot = "/srv/shop"\n\n' >/etc/howdah/conf.d/shop.toml
}

before_troubleshooting_4() { systemctl start howdah; }

before_sizing_1() {
    mkdir -p /etc/php/8.2/fpm/pool.d
    cat >/etc/php/8.2/fpm/pool.d/www.conf <<'END'
[www]
user = www-data
group = www-data
listen = /run/php/php8.2-fpm.sock
pm = dynamic
pm.max_children = 20
pm.start_servers = 2
pm.min_spare_servers = 2
pm.max_spare_servers = 6
pm.max_requests = 500
request_terminate_timeout = 30s
END
}

before_snapshot_1() {
    echo "<?php while (frankenphp_handle_request(function () { echo 'made up'; })) {}" >public/index.php
    echo "<?php class Booted {}" >boot.php
}

before_async_1() {
    cat >>vendor/autoload.php <<END
spl_autoload_register(fn (\$class) => include '$PACKAGES/async/src/' . substr(\$class, strlen('Howdah\\\\')) . '.php');
END
}
