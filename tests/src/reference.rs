//! nginx and PHP-FPM with Debian's own fastcgi.conf: the reference for expectations. The same nginx can also be put in
//! front of Howdah, which then has PHP-FPM's socket.

use crate::place::Place;
use crate::process::{self, wait_for_exit};
use crate::setup::Setup;
use rustix::process::Signal;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running pair of nginx and PHP-FPM.
#[derive(Debug)]
pub struct Reference {
    nginx: WebServer,
    fpm: Child,
    logs: Vec<PathBuf>,
}

/// A running nginx in front of the server on `socket`.
#[derive(Debug)]
pub(crate) struct WebServer {
    nginx: Child,
    logs: Vec<PathBuf>,
}

/// The socket to which nginx sends requests for scripts.
pub(crate) fn socket(place: &Place) -> PathBuf {
    place.run.join("fpm.sock")
}

/// Debian's PHP-FPM: `PHP_FPM`, or the newest installed one.
fn fpm_program() -> PathBuf {
    if let Some(path) = std::env::var_os("PHP_FPM") {
        return path.into();
    }
    let found = ["8.5", "8.4", "8.3", "8.2"]
        .iter()
        .map(|v| PathBuf::from(format!("/usr/sbin/php-fpm{v}")))
        .find(|p| p.exists());
    found.unwrap_or_else(|| panic!("php-fpm is not installed: run `make setup`"))
}

fn as_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn fpm_configuration(place: &Place, setup: &Setup) -> String {
    let run = place.run.display();
    let user = if as_root() { "user = root\ngroup = root\n" } else { "" };
    let env: String = setup.env.iter().map(|(key, value)| format!("env[{key}] = \"{value}\"\n")).collect();
    let pages = setup.settings.iter().find(|(key, _)| key == "status_path");
    let pages = pages.map(|(_, value)| format!("pm.status_path = {value}\n")).unwrap_or_default();
    format!(
        "[global]\nerror_log = {run}/fpm.log\ndaemonize = no\n[www]\n{user}listen = {run}/fpm.sock\nlisten.backlog = 511\nlisten.mode = 0666\n\
         pm = static\npm.max_children = {}\ncatch_workers_output = yes\n{pages}{env}",
        setup.workers
    )
}

fn nginx_configuration(place: &Place, setup: &Setup, port: u16, keeps: bool) -> String {
    let keep = if keeps { ("keepalive 1;", "fastcgi_keep_conn on;") } else { ("", "") };
    // The file that a mode boots responds to every path, whatever script nginx would look for.
    let boots = keeps && setup.settings.iter().any(|(key, _)| matches!(key.as_str(), "script" | "boot"));
    let rest = if boots { "@loop" } else { "$uri/ /index.php?$query_string" };
    let run = place.run.display();
    let root = place.root.display();
    let user = if as_root() { "user root;" } else { "" };
    let body =
        setup.settings.iter().find(|(key, _)| key == "http.max_body").map_or("128m", |(_, value)| value.as_str());
    let pages: String = setup
        .settings
        .iter()
        .filter(|(key, _)| key == "status_path")
        .map(|(_, path)| format!("location = {path} {{ include /etc/nginx/fastcgi.conf; fastcgi_pass php; }}\n"))
        .collect();
    format!(
        r"{user}
daemon off; worker_processes 1; pid {run}/nginx.pid; error_log {run}/nginx.log info;
events {{ worker_connections 1024; }}
http {{
  include /etc/nginx/mime.types; default_type application/octet-stream; access_log off;
  client_body_temp_path {run}/n-body; fastcgi_temp_path {run}/n-fastcgi; proxy_temp_path {run}/n-proxy;
  uwsgi_temp_path {run}/n-uwsgi; scgi_temp_path {run}/n-scgi;
  client_max_body_size {body}; keepalive_requests 100000;
  upstream php {{ server unix:{run}/fpm.sock; {} }}
  {}
  server {{
    listen 127.0.0.1:{port}; server_name localhost; root {root}; index index.php index.html;
    {pages}location / {{ try_files $uri {rest}; }}
    location @loop {{ include /etc/nginx/fastcgi.conf; fastcgi_pass php; }}
    location ~ [^/]\.php(/|$) {{
      fastcgi_split_path_info ^(.+?\.php)(/.*)$;
      try_files $fastcgi_script_name =404;
      set $path_info $fastcgi_path_info;
      fastcgi_param PATH_INFO $path_info;
      fastcgi_index index.php;
      include /etc/nginx/fastcgi.conf;
      fastcgi_pass php;
    }}
  }}
}}
",
        keep.0, keep.1
    )
}

fn spawn(command: &mut Command, place: &Place, log: &Path) -> Child {
    let output = File::create(log).unwrap_or_else(|e| panic!("{}: {e}", log.display()));
    let errors = output.try_clone().unwrap_or_else(|e| panic!("{e}"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TMPDIR", &place.tmp)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

impl Reference {
    pub(crate) fn start(place: &Place, setup: &Setup, port: u16) -> Self {
        let fpm_conf = place.run.join("fpm.conf");
        write(&fpm_conf, &fpm_configuration(place, setup));
        let logs: Vec<PathBuf> = ["fpm.log", "fpm.out"].iter().map(|name| place.run.join(name)).collect();
        let mut fpm = Command::new("setpriv");
        fpm.args(["--pdeathsig", "TERM", "--"]).arg(fpm_program()).arg("-F").arg("-y").arg(&fpm_conf);
        if as_root() {
            fpm.arg("-R");
        }
        fpm.arg("-d").arg(format!("session.save_path={}", place.sessions.display()));
        for (key, value) in &setup.ini {
            fpm.arg("-d").arg(format!("{key}={}", place.fill_in(value)));
        }
        let fpm = spawn(&mut fpm, place, &logs[1]);
        let nginx = WebServer::start(place, setup, port, false);
        let mut reference = Self { nginx, fpm, logs };
        let socket = socket(place);
        let up = process::eventually(process::PATIENCE, || socket.exists() || reference.has_ended());
        assert!(up && !reference.has_ended(), "PHP-FPM did not start:\n{}", reference.log());
        reference
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.nginx.has_ended() || self.fpm.try_wait().is_ok_and(|status| status.is_some())
    }

    pub(crate) fn log(&self) -> String {
        text_of(&self.logs) + &self.nginx.log()
    }

    pub(crate) fn finish(mut self) {
        self.nginx.finish();
        end(&mut self.fpm);
    }
}

impl WebServer {
    /// `keeps`: with persistent connections.
    pub(crate) fn start(place: &Place, setup: &Setup, port: u16, keeps: bool) -> Self {
        let configuration = place.run.join("nginx.conf");
        write(&configuration, &nginx_configuration(place, setup, port, keeps));
        let logs: Vec<PathBuf> = ["nginx.log", "nginx.out"].iter().map(|name| place.run.join(name)).collect();
        let mut nginx = Command::new("setpriv");
        // With its path: /usr/sbin is not in every user's PATH.
        nginx.args(["--pdeathsig", "TERM", "--", "/usr/sbin/nginx", "-c"]).arg(&configuration).arg("-e").arg(&logs[0]);
        Self { nginx: spawn(&mut nginx, place, &logs[1]), logs }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.nginx.try_wait().is_ok_and(|status| status.is_some())
    }

    pub(crate) fn log(&self) -> String {
        text_of(&self.logs)
    }

    pub(crate) fn finish(mut self) {
        end(&mut self.nginx);
    }
}

fn text_of(logs: &[PathBuf]) -> String {
    logs.iter().map(|log| String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()).collect()
}

fn end(child: &mut Child) {
    let known = process::tree(child.id());
    process::signal(child.id(), Signal::TERM);
    if wait_for_exit(child, Duration::from_secs(5)).is_none() {
        process::signal(child.id(), Signal::KILL);
        let _ = child.wait();
    }
    for identity in known.iter().filter(|i| process::alive(**i)) {
        process::signal(identity.pid, Signal::KILL);
    }
}
