//! Prepares the applications that are measured: the lab's scripts, the product API on Symfony, WordPress.

pub mod heavy;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cases::{App, catalogue};
use crate::jit;
use crate::services::Services;
use crate::systems::program;

/// Files of an application: path below its directory, and content.
type Files = &'static [(&'static str, &'static str)];

/// Reports the facts about PHP inside a system.
const PROBE: &str = include_str!("../apps/bench/probe.php");

/// Measures how fast PHP computes on this machine.
const SPEED: &str = include_str!("../apps/bench/speed.php");

const BENCH: Files = &[
    ("public/hello.php", include_str!("../apps/bench/hello.php")),
    ("public/html.php", include_str!("../apps/bench/html.php")),
    ("public/pdf.php", include_str!("../apps/bench/pdf.php")),
    ("public/random.php", include_str!("../apps/bench/random.php")),
    ("public/fibonacci.php", include_str!("../apps/bench/fibonacci.php")),
    ("public/usleep.php", include_str!("../apps/bench/usleep.php")),
    ("public/mysql-key.php", include_str!("../apps/bench/mysql-key.php")),
    ("public/mysql-rows.php", include_str!("../apps/bench/mysql-rows.php")),
    ("public/complex.php", include_str!("../apps/bench/complex.php")),
    ("public/work.php", include_str!("../apps/bench/work.php")),
    ("public/probe.php", PROBE),
    ("public/worker.php", include_str!("../apps/bench/worker.php")),
    ("swoole.php", include_str!("../apps/bench/swoole.php")),
    ("async.php", include_str!("../apps/bench/async.php")),
];

const SHOP: Files = &[
    ("bootstrap.php", include_str!("../apps/shop/bootstrap.php")),
    ("warm.php", include_str!("../apps/shop/warm.php")),
    ("src/Kernel.php", include_str!("../apps/shop/src/Kernel.php")),
    ("src/ProductController.php", include_str!("../apps/shop/src/ProductController.php")),
    ("public/index.php", include_str!("../apps/shop/public/index.php")),
    ("public/worker.php", include_str!("../apps/shop/public/worker.php")),
    ("async.php", include_str!("../apps/shop/async.php")),
];

const ORDERS: Files = &[
    ("bootstrap.php", include_str!("../apps/symfony/bootstrap.php")),
    ("warm.php", include_str!("../apps/symfony/warm.php")),
    ("loop.php", include_str!("../apps/symfony/loop.php")),
    ("src/Kernel.php", include_str!("../apps/symfony/src/Kernel.php")),
    ("src/Order.php", include_str!("../apps/symfony/src/Order.php")),
    ("src/OrderController.php", include_str!("../apps/symfony/src/OrderController.php")),
    ("src/Product.php", include_str!("../apps/symfony/src/Product.php")),
    ("src/ProductController.php", include_str!("../apps/symfony/src/ProductController.php")),
    ("probe.php", PROBE),
    ("templates/base.html.twig", include_str!("../apps/symfony/templates/base.html.twig")),
    ("templates/order.html.twig", include_str!("../apps/symfony/templates/order.html.twig")),
    ("public/index.php", include_str!("../apps/symfony/public/index.php")),
    ("public/worker.php", include_str!("../apps/symfony/public/worker.php")),
    ("async.php", include_str!("../apps/symfony/async.php")),
];

const WORDPRESS_INSTALL: &str = include_str!("../apps/wordpress-install.php");

/// Directory of Debian's WordPress package.
const WORDPRESS: &str = "/usr/share/wordpress";

/// A file that an application needs, and the Debian packages that contain it.
#[derive(Debug, Clone, Copy)]
pub struct Requirement {
    pub app: App,
    /// Display name.
    pub name: &'static str,
    /// Files that must exist.
    pub files: &'static [&'static str],
    /// Debian packages.
    pub packages: &'static [&'static str],
}

/// Requirements of the applications.
pub const REQUIREMENTS: [Requirement; 4] = [
    Requirement {
        app: App::Heavy,
        name: "Symfony, its serializer and Doctrine ORM (heavy shop API)",
        files: &[
            "/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php",
            "/usr/share/php/Symfony/Component/Serializer/autoload.php",
            "/usr/share/php/Symfony/Component/PropertyAccess/autoload.php",
            "/usr/share/php/Doctrine/ORM/autoload.php",
        ],
        packages: &[
            "php-symfony-framework-bundle",
            "php-symfony-serializer",
            "php-symfony-property-access",
            "php-doctrine-orm",
            "php-mysql",
        ],
    },
    Requirement {
        app: App::Orders,
        name: "Symfony with Twig, serializer and validator (order API)",
        files: &[
            "/usr/share/php/Symfony/Bundle/TwigBundle/autoload.php",
            "/usr/share/php/Symfony/Component/Serializer/autoload.php",
            "/usr/share/php/Symfony/Component/PropertyAccess/autoload.php",
            "/usr/share/php/Symfony/Component/Validator/autoload.php",
        ],
        packages: &[
            "php-symfony-framework-bundle",
            "php-symfony-twig-bundle",
            "php-symfony-serializer",
            "php-symfony-property-access",
            "php-symfony-validator",
        ],
    },
    Requirement {
        app: App::Shop,
        name: "Symfony and Doctrine DBAL (product API)",
        files: &[
            "/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php",
            "/usr/share/php/Doctrine/DBAL/autoload.php",
        ],
        packages: &["php-symfony-framework-bundle", "php-symfony-yaml", "php-doctrine-dbal", "php-mysql"],
    },
    Requirement {
        app: App::WordPress,
        name: "WordPress",
        files: &[
            "/usr/share/wordpress/wp-load.php",
            "/usr/share/wordpress/wp-content/themes/twentytwentythree/style.css",
        ],
        packages: &["wordpress", "wordpress-theme-twentytwentythree", "php-mysql"],
    },
];

impl Requirement {
    /// Returns `true` if all files exist.
    pub fn is_met(&self) -> bool {
        self.files.iter().all(|file| Path::new(file).is_file())
    }
}

/// Writes an application below `dir` and returns its document root.
pub fn prepare(app: App, dir: &Path, services: &Services) -> Result<PathBuf> {
    if let Some(requirement) = REQUIREMENTS.iter().find(|requirement| requirement.app == app && !requirement.is_met()) {
        bail!("{} is not installed; to get it: apt-get install {}", requirement.name, requirement.packages.join(" "));
    }
    match app {
        App::Scripts => bench(dir, services),
        App::Shop => shop(dir, services),
        App::Heavy => heavy::prepare(dir, services),
        App::Orders => orders(dir),
        App::WordPress => wordpress(dir, services),
        App::User => bail!("a user's application is served where it is"),
    }
}

fn write(dir: &Path, files: Files) -> Result<()> {
    for (name, content) in files {
        let path = dir.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the sockets of the services, as a PHP file that returns an array.
fn environment(services: &Services) -> String {
    let path = |socket: Option<&PathBuf>| socket.map_or_else(String::new, |path| path.display().to_string());
    format!(
        "<?php\nreturn ['mysql' => '{}', 'redis' => '{}'];\n",
        path(services.mariadb.as_ref().map(|service| &service.socket)),
        path(services.redis.as_ref().map(|service| &service.socket)),
    )
}

fn bench(dir: &Path, services: &Services) -> Result<PathBuf> {
    write(dir, BENCH)?;
    fs::write(dir.join("public/hello.txt"), catalogue::SMALL_FILE)?;
    fs::write(dir.join("public/photo.jpg"), catalogue::static_file())?;
    fs::write(dir.join("environment.php"), environment(services))?;
    Ok(dir.join("public"))
}

fn shop(dir: &Path, services: &Services) -> Result<PathBuf> {
    write(dir, SHOP)?;
    fs::write(dir.join("environment.php"), environment(services))?;
    php(&[&dir.join("warm.php").to_string_lossy()])?;
    writable(&dir.join("var"))?;
    Ok(dir.join("public"))
}

fn orders(dir: &Path) -> Result<PathBuf> {
    write(dir, ORDERS)?;
    php(&[&dir.join("warm.php").to_string_lossy()])?;
    writable(&dir.join("var"))?;
    Ok(dir.join("public"))
}

/// Runs an application's `loop.php`. Returns the processor time of a request of this path, in microseconds.
pub fn loop_cost(script: &Path, path: &str, jit: bool) -> Result<f64> {
    let script_name = script.to_string_lossy();
    let mut arguments = vec!["-d", "opcache.enable_cli=1"];
    if jit {
        arguments.extend(jit::SETTINGS.iter().flat_map(|setting| ["-d", setting]));
    }
    arguments.extend([&*script_name, path]);
    let printed = php(&arguments)?;
    printed.trim().parse().with_context(|| format!("{} printed {printed:?}", script.display()))
}

/// Measures the rounds of `work.php` that take a millisecond of processor time on this machine. With that number, "10
/// ms of computing" is the same work for every system, and takes about that long on every machine.
pub fn work_rounds_per_ms() -> Result<f64> {
    let mut script = tempfile::Builder::new().prefix("howdah-lab-").suffix(".php").tempfile()?;
    script.write_all(SPEED.as_bytes())?;
    let printed = php(&[&script.path().to_string_lossy()])?;
    let rounds: f64 =
        printed.trim().parse().with_context(|| format!("the measurement of speed printed {printed:?}"))?;
    if rounds < 1.0 {
        bail!("the measurement of speed found {rounds} rounds in a millisecond");
    }
    Ok(rounds)
}

fn wordpress(dir: &Path, services: &Services) -> Result<PathBuf> {
    let mariadb = services.mariadb.as_ref().context("WordPress needs MariaDB")?;
    let root = dir.join("public");
    fs::create_dir_all(dir)?;
    // A copy: PHP resolves symbolic links, and Debian's own tree would read Debian's own configuration.
    let status =
        Command::new("cp").arg("-rL").arg(format!("{WORDPRESS}/.")).arg(&root).stderr(Stdio::null()).status()?;
    if !root.join("wp-load.php").is_file() {
        bail!("copying {WORDPRESS} ended {status}");
    }
    fs::write(
        root.join("wp-config.php"),
        format!(
            "<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'lab');
define('DB_PASSWORD', 'lab');
define('DB_HOST', 'localhost:{socket}');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
foreach (['AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY', 'AUTH_SALT', 'SECURE_AUTH_SALT', 'LOGGED_IN_SALT',
    'NONCE_SALT'] as $name) {{
    define($name, 'only-for-measuring');
}}
// The port changes with every start; at another address than this WordPress redirects.
define('WP_HOME', 'http://' . require dirname(__DIR__) . '/address.php');
define('WP_SITEURL', WP_HOME);
// Nothing but the answers to requests: no background jobs, no calls to other hosts.
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) {{
    define('ABSPATH', __DIR__ . '/');
}}
require_once ABSPATH . 'wp-settings.php';
",
            socket = mariadb.socket.display()
        ),
    )?;
    fs::write(root.join("probe.php"), PROBE)?;
    write_address(&root, "localhost")?;
    let script = dir.join("install.php");
    fs::write(&script, WORDPRESS_INSTALL)?;
    let output = php(&[&script.to_string_lossy(), &root.to_string_lossy()])?;
    if !output.contains("installed") {
        bail!("WordPress could not be installed: {}", output.trim());
    }
    writable(&root.join("wp-content"))?;
    Ok(root)
}

/// Writes the address of the site for WordPress, as a site's configuration does, so that it need not be derived from
/// each request.
pub fn write_address(root: &Path, address: &str) -> Result<()> {
    let file = root.parent().context("WordPress has no directory above it")?.join("address.php");
    fs::write(&file, format!("<?php\nreturn '{address}';\n"))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Runs a script on the command line and returns its output.
fn php(arguments: &[&str]) -> Result<String> {
    let php = program("php").context("php is not installed (apt-get install php-cli)")?;
    let output =
        Command::new(php).args(["-d", "display_errors=stderr"]).args(arguments).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!(
            "php {} ended {}: {}{}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim(),
            String::from_utf8_lossy(&output.stdout).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command of the user's Symfony application.
pub fn console(app: &Path, arguments: &[&str]) -> Result<()> {
    let script = app.join("bin/console");
    let mut words = vec![&*script.to_string_lossy()].into_iter().map(str::to_owned).collect::<Vec<_>>();
    words.extend(arguments.iter().map(|word| (*word).to_owned()));
    php(&words.iter().map(String::as_str).collect::<Vec<_>>()).map(|_| ())
}

/// Lets the servers' accounts write to a directory.
fn writable(dir: &Path) -> Result<()> {
    let status = Command::new("chmod").arg("-R").arg("a+rwX").arg(dir).status()?;
    if !status.success() {
        bail!("chmod ended {status}");
    }
    Ok(())
}
