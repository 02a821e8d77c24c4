//! The part of nginx's configuration that every adapter with nginx in front shares.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;

use super::{Running, Site, drop_to, program, version_line};
use crate::cases::{Protocol, Setup};
use crate::certificate::Certificate;

/// Types that are compressed in addition to text/html, which nginx always compresses when gzip is on.
const GZIP_TYPES: &str = "text/plain text/css text/xml application/json application/javascript application/xml \
                          application/rss+xml image/svg+xml";

/// Returns nginx's configuration, with reasons.
pub fn tuning() -> Vec<String> {
    vec![
        "nginx: one worker per core, sendfile and tcp_nopush on, as Debian ships it".into(),
        "nginx: gzip on at its default level 1, as Debian ships it, with gzip_types for text formats".into(),
        "nginx: keepalive_requests raised, so that no system pays for reconnecting while another does not".into(),
        "nginx: worker_connections for all clients at once".into(),
        "nginx, cases with TLS: listen ... ssl http2, session tickets as they are by default; over HTTP/1.1 and HTTP/2"
            .into(),
        "nginx, cases that hand requests on: HTTP/1.1 with kept connections, as many as clients have".into(),
        "nginx: access log off, except in set-ups as shipped".into(),
    ]
}

/// Returns the version of nginx, if it is installed.
pub fn version() -> Option<String> {
    version_line(program("nginx")?, &["-v"]).map(|line| line.replace("nginx version: ", ""))
}

/// Returns the settings of the distribution's packages, and faster ones.
fn http(site: &Site) -> String {
    match site.setup {
        Setup::Lab | Setup::Tuned => {
            format!(
                "    keepalive_requests 1000000;\n    gzip on;\n    gzip_types {GZIP_TYPES};\n    access_log off;\n"
            )
        }
        Setup::Shipped => format!("    gzip on;\n    access_log {}/access.log;\n", site.dir.display()),
    }
}

/// Returns a whole configuration around the given `server` content.
pub fn config(site: &Site, upstream: &str, server: &str) -> String {
    let user = drop_to().map_or_else(String::new, |user| format!("user {user};\n"));
    let dir = site.dir.display();
    format!(
        "{user}worker_processes auto;
pid {dir}/nginx.pid;
error_log {dir}/nginx-error.log;
daemon off;
events {{
    worker_connections {connections};
}}
http {{
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
{http}    client_body_temp_path {dir}/nginx-body;
    fastcgi_temp_path {dir}/nginx-fastcgi;
    proxy_temp_path {dir}/nginx-proxy;
    scgi_temp_path {dir}/nginx-scgi;
    uwsgi_temp_path {dir}/nginx-uwsgi;
{upstream}    server {{
        listen {address}{listen};
        server_name localhost;
{tls}        root {root};
        index index.php index.html;
{server}    }}
}}
",
        // One to the client and one to the backend, in case one worker gets all of them.
        connections = (3 * site.connections).max(1024),
        address = site.address,
        http = http(site),
        listen = if site.certificate.is_some() { " ssl http2" } else { "" },
        tls = site.certificate.as_ref().map_or_else(String::new, tls),
        root = site.root.display(),
    )
}

/// Returns TLS settings as Debian's nginx has them: tickets are on by default, and clients choose among safe ciphers.
fn tls(certificate: &Certificate) -> String {
    format!(
        "        ssl_certificate {};\n        ssl_certificate_key {};\n        ssl_protocols TLSv1.2 TLSv1.3;\n",
        certificate.chain.display(),
        certificate.key.display()
    )
}

/// Returns `true` if this nginx supports a protocol over TLS in the lab's configuration.
pub fn supports_protocol(protocol: Protocol) -> bool {
    let has = |module: &str| {
        let output = program("nginx").and_then(|nginx| Command::new(nginx).arg("-V").output().ok());
        output.is_some_and(|output| String::from_utf8_lossy(&output.stderr).contains(module))
    };
    match protocol {
        Protocol::Http1 => has("http_ssl_module"),
        Protocol::Http2 => has("http_ssl_module") && has("http_v2_module"),
        Protocol::Http3 => false,
    }
}

/// Returns the `upstream` and the content of `server` that proxy all requests over persistent connections.
pub fn proxy_config(site: &Site, upstream: SocketAddr) -> (String, String) {
    (
        format!("    upstream behind {{\n        server {upstream};\n        keepalive {};\n    }}\n", site.connections.max(16)),
        "        location / {\n            proxy_pass http://behind;\n            proxy_http_version 1.1;\n            proxy_set_header Connection \"\";\n            proxy_set_header Host $http_host;\n        }\n".into(),
    )
}

/// Returns the content of `server` that serves files and passes scripts on over FastCGI to `pass`.
pub fn scripts(site: &Site, pass: &str) -> String {
    let fallback = if site.front_controller { "/index.php?$query_string" } else { "=404" };
    format!(
        "        location / {{
            try_files $uri $uri/ {fallback};
        }}
        location ~ \\.php(/|$) {{
            fastcgi_split_path_info ^(.+?\\.php)(/.*)$;
            try_files $fastcgi_script_name =404;
            set $path_info $fastcgi_path_info;
            include /etc/nginx/fastcgi.conf;
            fastcgi_param PATH_INFO $path_info;
{pass}        }}
"
    )
}

/// Starts nginx with this configuration as part of a system.
pub fn start(site: &Site, running: &mut Running, config: &str) -> Result<()> {
    let path = site.write("nginx.conf", config)?;
    running.keep(&path)?;
    running.logs.push(site.dir.join("nginx-error.log"));
    let binary = program("nginx").unwrap_or_else(|| "nginx".into());
    let errors = site.dir.join("nginx-error.log");
    running.spawn(&site.launch(
        "nginx",
        binary,
        // -e: before it has read its configuration, nginx would write to the system's log.
        &["-e", &errors.to_string_lossy(), "-p", &site.dir.to_string_lossy(), "-c", &path.to_string_lossy()],
    ))
}
