//! First steps with only the packages' files installed: no systemd, no /run/howdah, no HOME. Every command of the
//! guides must find the intended server, as root and as another user.

use howdah_tests::howdah::program;
use std::process::Command;

const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const INSIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/installed/inside.sh");

/// A command, its exit status, and part of its output.
type Step = (&'static str, i32, &'static str);

const AS_NOBODY: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups howdah status";
const SERVE: &str = "howdah serve --config /etc/howdah/howdah.toml";

const STEPS: &[Step] = &[
    ("dead_links", 0, ""),
    ("howdah check --config /etc/howdah/howdah.toml", 0, "user = \"howdah\""),
    ("howdah check /etc/howdah/howdah.toml", 0, "user = \"howdah\""),
    ("howdah status", 1, "no howdah server responds on unix:/run/howdah/admin.sock"),
    ("start howdah serve --config /etc/howdah/howdah.toml", 0, ""),
    ("until_ready curl -sf http://127.0.0.1:8080/", 0, ""),
    ("curl -s http://127.0.0.1:8080/", 0, "Howdah is installed and runs PHP"),
    ("stat -c '%G %a' /var/log/howdah/access.log", 0, "adm 640"),
    ("howdah help reload", 0, "Usage: howdah reload"),
    ("stat -c '%U %a' /run/howdah", 0, "root 755"),
    ("howdah status", 0, "default"),
    ("howdah top --once", 0, "default"),
    ("howdah routes", 0, ""),
    ("howdah reload", 0, "new workers serve"),
    (AS_NOBODY, 1, "run the command as root, or see `admin_group`"),
    (SERVE, 1, "already running as process"),
    // A site, then a site with its own pool.
    ("site app.example ''", 0, ""),
    ("howdah reload", 0, "site app.example: added"),
    ("curl -s -H 'Host: app.example' http://127.0.0.1:8080/", 0, "app"),
    ("site own.example '[pool]'", 0, ""),
    ("howdah reload", 0, "pool own.example: added"),
    ("curl -s -H 'Host: own.example' http://127.0.0.1:8080/", 0, "app"),
    ("howdah upgrade", 0, ""),
    ("curl -s -H 'Host: own.example' http://127.0.0.1:8080/", 0, "app"),
    // In a directory that has neither settings nor an application.
    ("howdah explain http://own.example/", 0, "/srv/app/index.php in the pool own.example"),
    ("howdah check", 0, "/etc/howdah/conf.d/own.example.toml"),
    ("howdah stop", 0, "stopped"),
    // The state directory belongs to the service.
    ("cd /srv/app; HOWDAH_USER=www-data start howdah dev", 0, ""),
    ("until_ready howdah status", 0, ""),
    ("stat -c %U /var/lib/howdah-www-data", 0, "www-data"),
    ("howdah trust --print", 1, "there is one in /var/lib/howdah-www-data"),
    ("howdah trust --state /var/lib/howdha", 1, "there is no local CA in the state directory /var/lib/howdha"),
    ("cd /srv/app; howdah mails", 0, "No mails from /srv/app"),
    ("howdah stop", 0, "stopped"),
    // Without another user, the server takes the service's user and its state directory.
    ("cd /srv/app; start howdah dev --user www-data", 0, ""),
    ("until_ready howdah status", 0, ""),
    ("howdah trust --print", 0, "BEGIN CERTIFICATE"),
    ("howdah stop", 0, "stopped"),
    // Directories that the unit hides from the service.
    (
        "cd /; home_app; site home.example ''; sed -i s,/srv/,/home/, /etc/howdah/conf.d/home.example.toml; howdah check",
        0,
        HIDDEN,
    ),
    ("drop_in; howdah check 2>&1 | grep -c ProtectHome || true", 0, "0\n"),
    (
        "as_systemd_hides_homes; howdah check",
        1,
        "/home/app does not exist: the systemd unit hides /home (ProtectHome=)",
    ),
    ("umount /home; rm /etc/howdah/conf.d/home.example.toml; howdah check", 0, ""),
    // An unprivileged user, without the package's settings, in another directory than the server's.
    ("mv /etc/howdah /etc/away; as_user howdah check /srv/app", 0, "root = \"/srv/app\""),
    ("as_user howdah status", 1, "no howdah server"),
    ("cd /srv/app; start as_user howdah serve --listen 127.0.0.1:8081", 0, ""),
    ("until_ready curl -sf http://127.0.0.1:8081/", 0, ""),
    ("cd /; as_user howdah status", 0, "default"),
    ("as_user howdah top --once", 0, "default"),
    ("as_user howdah reload", 0, "new workers serve"),
    ("cd /srv/app; as_user howdah explain http://localhost:8081/", 0, "/srv/app/index.php"),
    ("as_user howdah upgrade", 0, ""),
    ("curl -s http://127.0.0.1:8081/", 0, "app"),
    ("as_user howdah stop", 0, "stopped"),
    ("as_user howdah serve /srv/app --listen 127.0.0.1:81", 1, "127.0.0.1:81"),
];

const HIDDEN: &str = "root /home/app: howdah.service hides it from the service (ProtectHome=yes in \
    /usr/lib/systemd/system/howdah.service)";

/// Shell functions of the steps.
const FUNCTIONS: &str = r#"
start() { "$@" >/run/log 2>&1 & }
until_ready() { for _ in $(seq 600); do "$@" >/run/out 2>&1 && return; sleep 0.1; done; cat /run/log /run/out; false; }
# As after a login. Without its directory, sockets would be in /tmp, where other tests' servers look for them.
install -d -o 65534 -m 0700 /run/user
as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups env -i PATH="$PATH" XDG_RUNTIME_DIR=/run/user "$@"; }
# Relative links of the installed pages that lead nowhere; true without any.
dead_links() {
    local page target found=0 dead=0
    for page in /usr/share/doc/howdah/*/*.md; do
        while read -r target; do
            found=$((found + 1))
            [ -e "${page%/*}/$target" ] || { echo "$page: $target"; dead=1; }
        done < <(awk '/^ *```/ { code = !code } !code' "$page" | sed 's/`[^`]*`//g' |
            grep -oP '(\]\(|^\[[^\]]+\]: )\K[^)#: ]+(?=[)# ]|$)')
    done
    [ $dead = 0 ] && [ $found -gt 200 ]
}
home_app() { mount -t tmpfs tmpfs /home; mkdir /home/app; cp /srv/app/index.php /home/app; }
drop_in() { install -D /usr/share/doc/howdah/drop-ins/home.conf /etc/systemd/system/howdah.service.d/home.conf; }
as_systemd_hides_homes() {
    install -d -m 0 /run/systemd/inaccessible/dir
    umount /home
    mount --bind /run/systemd/inaccessible/dir /home
}
site() { printf 'hosts = "%s"\nroot = "/srv/app"\n%s\n' "$1" "$2" >"/etc/howdah/conf.d/$1.toml"; }
"#;

#[test]
fn the_guides_first_steps_work_with_the_packages_files_without_systemd() {
    if !rustix::process::geteuid().is_root() {
        howdah_skip::skip!("root", "only root can mount the packages' files in a namespace");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut script = FUNCTIONS.to_owned();
    for (at, (command, ..)) in STEPS.iter().enumerate() {
        script += &format!("echo '=== {at}'; status=0; {{ {command}; }} 2>&1 || status=$?; echo \"#=> $status\"\n");
    }
    script += "howdah stop >/dev/null 2>&1 || true\n";
    let path = dir.path().join("steps.sh");
    std::fs::write(&path, script).unwrap();
    let output = Command::new("unshare")
        .args([
            "--mount",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "--propagation",
            "private",
            "bash",
        ])
        .arg(INSIDE)
        .arg(&path)
        .current_dir(TOP)
        .env("BUILT", program().parent().unwrap())
        .env_remove("HOWDAH_ALLOW_ROOT")
        .env_remove("HOWDAH_PHP")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    for (at, (command, status, text)) in STEPS.iter().enumerate() {
        let rest = said.split_once(&format!("=== {at}\n")).map(|(_, rest)| rest);
        let (printed, ended) =
            rest.and_then(|rest| rest.split_once("#=> ")).unwrap_or_else(|| panic!("{command}: {said}"));
        let ended = ended.lines().next().unwrap_or_default();
        assert_eq!(ended, status.to_string(), "{command}: {printed}\n{said}");
        assert!(printed.contains(text), "{command}: {text} is not in {printed}");
    }
}
