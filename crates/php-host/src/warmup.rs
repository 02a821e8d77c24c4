//! Requests that warm a new worker up. They are made here and not by the server because they run before the worker is
//! part of the pool; they look like plain GET requests from this machine.

use howdah_transport::wire::{RequestBuilder, VarName};
use howdah_transport::zygote_protocol::BootSpec;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A request for a target, such as `/products?page=2`, as it would lie in a lane.
pub(crate) fn request(spec: &BootSpec, target: &str) -> Box<[u64]> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let root = Path::new(&spec.root);
    let Script { name, filename, info } = script(spec, root, path);
    let filename = filename.to_string_lossy().into_owned();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
    let mut request = RequestBuilder::new(0, 1001, now);
    let query = request.var(VarName::QUERY_STRING, query.as_bytes());
    let method = request.var(VarName::REQUEST_METHOD, b"GET");
    // The same names in the same order as in requests of the server: `$_SERVER` then has its place for each.
    request.var(VarName::CONTENT_TYPE, b"");
    request.var(VarName::CONTENT_LENGTH, b"");
    let name = request.var(VarName::SCRIPT_NAME, name.as_bytes());
    let uri = request.var(VarName::REQUEST_URI, target.as_bytes());
    request.var_at(VarName::DOCUMENT_URI, name);
    request.var(VarName::DOCUMENT_ROOT, spec.root.as_bytes());
    request.var(VarName::SERVER_PROTOCOL, b"HTTP/1.1");
    request.var(VarName::REQUEST_SCHEME, b"http");
    request.var(VarName::GATEWAY_INTERFACE, b"CGI/1.1");
    request.var(VarName::SERVER_SOFTWARE, spec.worker.software.as_str().as_bytes());
    request.var(VarName::REMOTE_ADDR, b"127.0.0.1");
    request.var(VarName::REMOTE_PORT, b"0");
    request.var(VarName::SERVER_ADDR, b"127.0.0.1");
    request.var(VarName::SERVER_PORT, b"80");
    request.var(VarName::SERVER_NAME, b"localhost");
    request.var(VarName::REDIRECT_STATUS, b"200");
    let filename = request.var(VarName::SCRIPT_FILENAME, filename.as_bytes());
    request.var(VarName::PATH_INFO, info.as_bytes());
    if !info.is_empty() {
        request.var_parts(VarName::PATH_TRANSLATED, &[spec.root.as_bytes(), info.as_bytes()]);
    }
    request.var(VarName::REQUEST_ID, b"0000000000000000");
    request.var(VarName::HTTP_HOST, b"localhost");
    request.var(VarName::HTTP_USER_AGENT, b"Howdah warm-up");
    request.var(VarName::HTTP_ACCEPT, b"*/*");
    request.query(query).method(method).uri(uri).script(filename);
    request.finish().to_words()
}

/// What would run.
struct Script {
    name: String,
    filename: PathBuf,
    /// `PATH_INFO`.
    info: String,
}

impl Script {
    fn new(name: String, filename: PathBuf) -> Self {
        Self { name, filename, info: String::new() }
    }
}

/// The script that would run: the pool's own if it has one for all paths, else the path's own, the index of a
/// directory, one in the middle of the path, or the front controller.
fn script(spec: &BootSpec, root: &Path, path: &str) -> Script {
    if spec.worker.boot_script.is_empty() && !spec.worker.script.is_empty() {
        let file = PathBuf::from(spec.worker.script.as_str());
        let below = file.strip_prefix(root).ok().or_else(|| file.file_name().map(Path::new)).unwrap_or(&file);
        let name = format!("/{}", below.display());
        let info = path.strip_prefix(&name).filter(|rest| rest.starts_with('/')).unwrap_or_default().to_owned();
        return Script { name, filename: file, info };
    }
    let relative = path.trim_start_matches('/');
    let own = root.join(relative);
    if own.extension().is_some_and(|e| e == "php") && own.is_file() {
        return Script::new(format!("/{relative}"), own);
    }
    let index = own.join("index.php");
    if index.is_file() {
        return Script::new(format!("{}/index.php", path.trim_end_matches('/')), index);
    }
    for (at, _) in path.match_indices('/').filter(|(at, _)| path[..*at].ends_with(".php")) {
        let filename = root.join(path[..at].trim_start_matches('/'));
        if filename.is_file() {
            return Script { name: path[..at].to_owned(), filename, info: path[at..].to_owned() };
        }
    }
    let front = if spec.front_controller.is_empty() { "index.php" } else { &spec.front_controller };
    Script::new(format!("/{front}"), root.join(front))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_without_a_script_goes_to_the_front_controller() {
        let spec = BootSpec { front_controller: "app.php".to_owned(), ..BootSpec::default() };
        let found = script(&spec, Path::new("/nonexistent"), "/a/b");
        assert_eq!((found.name.as_str(), found.filename.as_path()), ("/app.php", Path::new("/nonexistent/app.php")));
    }

    #[test]
    fn a_script_in_the_middle_of_a_target_has_the_rest_as_its_path_info() {
        let spec = BootSpec::default();
        let root = std::env::temp_dir().join(format!("howdah-warmup-{}", std::process::id()));
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/index.php"), "").unwrap();
        let found = script(&spec, &root, "/sub/index.php/a/b");
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!((found.name.as_str(), found.info.as_str()), ("/sub/index.php", "/a/b"));
        assert_eq!(found.filename, root.join("sub/index.php"));
    }
}
