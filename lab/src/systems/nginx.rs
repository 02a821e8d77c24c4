//! The part of nginx's configuration that every adapter with nginx in front shares.

use anyhow::Result;

use super::{Running, Site, drop_to, program, version_line};

/// Types that are compressed beside text/html, which nginx always compresses when gzip is on.
const GZIP_TYPES: &str = "text/plain text/css text/xml application/json application/javascript application/xml \
                          application/rss+xml image/svg+xml";

/// Why nginx is set up as it is.
pub fn tuning() -> Vec<String> {
    vec![
        "nginx: one worker per core, sendfile and tcp_nopush on, as Debian ships it".into(),
        "nginx: gzip on at its default level 1, as Debian ships it, with gzip_types for text formats".into(),
        "nginx: keepalive_requests raised, so that no system pays for reconnecting while another does not".into(),
        "nginx: worker_connections for all clients at once".into(),
        "nginx: access log off, as in every other system here".into(),
    ]
}

/// Version of nginx, if it is installed.
pub fn version() -> Option<String> {
    version_line(program("nginx")?, &["-v"]).map(|line| line.replace("nginx version: ", ""))
}

/// A whole configuration around the given `server` content.
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
    keepalive_requests 1000000;
    gzip on;
    gzip_types {GZIP_TYPES};
    access_log off;
    client_body_temp_path {dir}/nginx-body;
    fastcgi_temp_path {dir}/nginx-fastcgi;
    proxy_temp_path {dir}/nginx-proxy;
    scgi_temp_path {dir}/nginx-scgi;
    uwsgi_temp_path {dir}/nginx-uwsgi;
{upstream}    server {{
        listen {address};
        server_name localhost;
        root {root};
        index index.php index.html;
{server}    }}
}}
",
        // One to the client and one to what is behind, should one worker get them all.
        connections = (3 * site.connections).max(1024),
        address = site.address,
        root = site.root.display(),
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
