//! `howdah init`: writes a `howdah.toml` to start from, for the application that `serve` detects in a directory or for
//! another server's configuration.

use super::import;
use crate::output;
use anyhow::{Context, Result, anyhow, bail};
use howdah_config::quoted;
use howdah_detect::Application;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

const NAME: &str = "howdah.toml";
/// Schema installed by the package. The first line of the file points editors to it.
const SCHEMA: &str = "/usr/share/howdah/howdah.schema.json";

/// Writes `howdah.toml` into the project. An existing file is not changed.
pub(crate) fn write(dir: &Path) -> Result<()> {
    let (project, page) = found_with_schema(dir)?;
    let path = project.join(NAME);
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = match file {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{} exists already; `howdah init --print` prints what would be written", path.display())
        }
        other => other.with_context(|| format!("cannot write {}", path.display()))?,
    };
    file.write_all(page.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    let path = path.display();
    output::print(format!("wrote {path}; `howdah check` shows what it means, `howdah serve` serves it\n"))
}

/// Returns the `howdah.toml` for the application in a directory.
pub(crate) fn page(dir: &Path) -> Result<String> {
    found_with_schema(dir).map(|(_, page)| page)
}

fn found_with_schema(dir: &Path) -> Result<(std::path::PathBuf, String)> {
    let (project, page) = found(dir)?;
    let line = if Path::new(SCHEMA).is_file() { format!("#:schema file://{SCHEMA}\n") } else { String::new() };
    Ok((project, line + &page))
}

/// Returns the project's directory and its `howdah.toml`.
fn found(dir: &Path) -> Result<(std::path::PathBuf, String)> {
    let dir = dir.canonicalize().with_context(|| format!("cannot open the directory {}", dir.display()))?;
    if dir.is_file() {
        let text = import::text(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
        let file = dir.display().to_string();
        let named = |why: String| if why.starts_with(&file) { anyhow!(why) } else { anyhow!("{file}: {why}") };
        let page = import::converted(&dir, &text).map_err(named)?;
        return Ok((std::env::current_dir()?, with_user(&page, user())));
    }
    if let Some(found) = howdah_detect::look(&dir) {
        let page = of_application(&found);
        return Ok((found.project, page));
    }
    let root = ["public", "."].into_iter().find(|root| dir.join(root).join("index.php").is_file());
    match root {
        Some(root) => Ok((dir, of_plain(root))),
        None => {
            bail!("there is no index.php in {0} or {0}/public: name the application's directory", dir.display())
        }
    }
}

fn of_application(found: &Application) -> String {
    let root = found.root.strip_prefix(&found.project).unwrap_or(&found.root);
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    let mut page = format!("# {}, detected by {}.\n", found.title(), found.evidence);
    let _ = writeln!(page, "\n# The document root; everything else of the project stays private.");
    let _ = writeln!(page, "root = {}", quoted(&root.to_string_lossy()));
    if let Some(app) = found.kind.app {
        let _ = writeln!(
            page,
            "\n# Its rules: private paths, upload directories, the front controller. `howdah check` prints them; add more"
        );
        let _ = writeln!(page, "# as [[rule]].");
        let _ = writeln!(page, "app = {}", quoted(app));
    }
    page.push_str(&rest());
    page.push_str(&match found.recipe() {
        Some(_) => BOOTED.to_owned(),
        None => classic(found.kind.faster),
    });
    page.push_str(LOG);
    page
}

fn of_plain(root: &str) -> String {
    let mut page = String::from("# A PHP application that `howdah init --list` does not list.\n");
    let _ = writeln!(page, "\n# The document root. Preferably a directory with public files only, such as \"public\".");
    let _ = writeln!(page, "root = {}", quoted(root));
    let _ = writeln!(page, "\n# Runs for every path that is not a file.");
    let _ = writeln!(page, "front_controller = \"index.php\"");
    page.push_str(&rest());
    page.push_str(&classic(""));
    page.push_str(LOG);
    page
}

/// The addresses and the user, which all files share.
fn rest() -> String {
    let listen = "\n# Addresses. On the internet: listen = [\"http://:80\", \"https://:443\"], with [tls] auto = true and\n\
         # acme.names for certificates.\n\
         listen = [\"127.0.0.1:8080\"]\n";
    [listen, user()].concat()
}

/// `serve` as root requires a user, unless the environment sets one. Every Debian installation has this user.
fn user() -> &'static str {
    let settled = |name| std::env::var_os(name).is_some_and(|value| value != "false");
    if !rustix::process::geteuid().is_root()
        || settled("HOWDAH_USER")
        || settled("HOWDAH_PHP_USER")
        || settled("HOWDAH_ALLOW_ROOT")
    {
        return "";
    }
    "\n# If root starts the server, PHP runs as this user, and the server as `howdah` if that user exists, else as this\n\
     # one, too.\nphp.user = \"www-data\"\n"
}

/// Adds the user that `serve` needs to a converted configuration, if that names none.
fn with_user(page: &str, user: &str) -> String {
    let of_php = |line: &str| line.starts_with("user = ") || line.starts_with("php.user = ");
    match page.split_once("\n\n") {
        Some((head, rest)) if !user.is_empty() && !page.lines().any(of_php) => match rest.split_once("[php]\n") {
            Some((before, after)) => format!("{head}\n\n{before}[php]\nuser = \"www-data\"\n{after}"),
            None => format!("{head}\n{user}\n{rest}"),
        },
        _ => page.to_owned(),
    }
}

const LOG: &str = "\n[log]\naccess = \"stdout\"\n";

/// Text for an application without a recipe.
fn classic(faster: &str) -> String {
    let faster = if faster.is_empty() { String::new() } else { format!("# Faster, but needs changes: {faster}.\n") };
    format!("\n# Each request starts with a fresh PHP state.\n{faster}mode = \"classic\"\n")
}

/// Text for an application with a recipe.
const BOOTED: &str = "\n# The application boots once and returns to that state after each request. Other scripts than its\n\
     # index.php, and index.php if the boot fails, run in classic mode; the log has the reason. Classic mode\n\
     # for all: mode = \"classic\".\n\
     mode = \"snapshot\"\n\
     \n\
     # Public pages that workers request before they serve, to load their code. Further ones are learned from\n\
     # the traffic, unless warmup_auto = false.\n\
     warmup = [\"/\"]\n\
     \n\
     # One in this many GETs without cookies is repeated in classic mode and compared. A route that differs runs\n\
     # in classic mode from then on: `howdah routes`.\n\
     compare_one_in = 1000\n";
