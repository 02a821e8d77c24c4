//! Recipes of sites: each site's application boots in a separate pool, independent of the server's other sites.

use super::project::{Project, Served, need_symfony};
use howdah_tests::Request;
use howdah_tests::howdah::program;
use howdah_tests::process::{PATIENCE, eventually};
use std::process::Command;

const SETTINGS: &str = r#"
sites = ["sites/*.toml"]
mode = "snapshot"

[[site]]
hosts = "shop.example"
root = "public"
app = "symfony"

# The same application, and not booted.
[[site]]
hosts = "plain.example"
root = "public"
"#;

const OWN_POOL: &str = r#"
hosts = ["blog.example", "www.blog.example"]
root = "../public"
app = "symfony"

[pool]
workers = 1
"#;

fn mode(served: &Served<'_>, host: &str) -> String {
    served.send(Request::get("/mode").header("Host", host)).text()
}

#[test]
fn a_recipe_in_a_site_boots_this_site_and_no_other() {
    need_symfony!();
    let project = Project::symfony();
    project.write("howdah.toml", SETTINGS);
    project.write("sites/blog.toml", OWN_POOL);
    let served = project.serve(&[]);
    for host in ["shop.example", "blog.example", "www.blog.example"] {
        assert!(eventually(PATIENCE, || mode(&served, host) == "snapshot 1"), "{host}: {}", served.log());
    }
    for _ in 0..3 {
        assert_eq!(mode(&served, "plain.example"), "classic 1");
        assert_eq!(mode(&served, "shop.example"), "snapshot 1");
        let other = served.send(Request::get("/other.php").header("Host", "shop.example"));
        assert_eq!(other.status, 404, "{}", other.text());
    }
    let howdah = |arguments: &[&str]| {
        let output = Command::new(program())
            .args(arguments)
            .current_dir(&project.dir)
            .env("HOWDAH_ALLOW_ROOT", "true")
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    for (host, pool) in [
        ("shop.example", "shop.example.symfony"),
        ("blog.example", "blog.example.symfony"),
        ("plain.example", "default"),
    ] {
        let said = howdah(&["explain", &format!("http://{host}/items/1")]);
        assert!(said.contains(&format!("in the pool {pool}\n")), "{said}");
    }
    let said = howdah(&["check"]);
    assert!(
        said.contains("# Site plain.example: found Symfony v5.4.0")
            || said.contains("# Site plain.example: found Symfony 5.4.0"),
        "{said}"
    );
    assert!(!said.contains("# Site shop.example: found"), "{said}");
    served.finish();
}

/// The same as with a single `[[site]]`.
#[test]
fn the_top_level_app_is_booted_for_a_site_that_names_none() {
    need_symfony!();
    let project = Project::symfony();
    project.write(
        "howdah.toml",
        "app = \"symfony\"\nmode = \"snapshot\"\n[[site]]\nhosts = \"default\"\nroot = \"public\"\n",
    );
    let served = project.serve(&[]);
    assert!(eventually(PATIENCE, || mode(&served, "any.example") == "snapshot 1"), "{}", served.log());
    served.finish();
}
