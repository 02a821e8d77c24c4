//! Sets the weight of the lab's heavy shop to match a published application: by the processor time of one request, in a
//! booted application and in a fresh one.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::apps::{self, heavy, heavy::Weight};
use crate::cases::Case;
use crate::interrupt::Interrupt;
use crate::load::client;
use crate::plan::Plan;
use crate::record::SystemStatus;
use crate::sample::Reading;
use crate::stage::Stage;
use crate::systems::{Site, System, free_address, wait_until_ready};

/// Target processor time of one request, in microseconds.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightTarget {
    /// With a fresh PHP process state for the request.
    pub fresh_us: f64,
    /// With a booted application.
    pub booted_us: f64,
}

/// Requests that fill caches, and requests that are measured.
const WARM: u32 = 4;
const MEASURED: u32 = 12;

/// Finds and sets the weight. Returns a description of it.
pub fn find(aim: WeightTarget, plan: &Plan, stage: &Stage, interrupt: &Interrupt) -> Result<String> {
    let case = plan.cases.first().context("nothing to measure")?;
    let script = stage.loop_script(case).context("the heavy shop could not be prepared")?;
    let dir = script.parent().context("the heavy shop has no directory")?;
    // The first of these boots the application again for each request.
    let fresh = ["nginx-fpm", "howdah-classic"];
    let system = fresh.iter().find_map(|wanted| {
        let (system, status) = plan.systems.iter().find(|(system, _)| system.id() == **wanted)?;
        matches!(status, SystemStatus::Found { .. }).then_some(system.as_ref())
    });
    let system = system.context("no system that starts PHP anew for each request")?;
    eprintln!(
        "finding the weight: {:.0} ms booted, {:.0} ms started anew",
        aim.booted_us / 1000.0,
        aim.fresh_us / 1000.0
    );
    let booted = |weight| -> Result<f64> {
        interrupt.check()?;
        heavy::weigh(dir, weight)?;
        apps::loop_cost(&script, &case.path, false)
    };
    let few = Weight { variants: 20, parts: 0 };
    let many = Weight { variants: 80, parts: 0 };
    let variants =
        meet(aim.booted_us, (few.variants, booted(few)?), (many.variants, booted(many)?), Weight::MAX.variants);
    let anew = |weight| -> Result<f64> {
        interrupt.check()?;
        heavy::weigh(dir, weight)?;
        fresh_us(stage, system, case, interrupt)
    };
    let without = Weight { variants, parts: 0 };
    let with = Weight { variants, parts: 1000 };
    let parts = meet(aim.fresh_us, (without.parts, anew(without)?), (with.parts, anew(with)?), Weight::MAX.parts);
    let weight = Weight { variants, parts };
    let (booted, anew) = (booted(weight)?, anew(weight)?);
    Ok(format!(
        "The application is the lab's own shop API, not Sylius: Symfony with Doctrine ORM, {variants} variants of a product with \
         translations, prices, taxes and serializer groups, and {parts} services that are built at boot. Both numbers were found by \
         measuring: the published {:.0} ms of processor time for a request that starts PHP anew (two processors over the requests per \
         second of PHP-FPM) and {:.0} ms for one on a booted application (the same for worker mode) were aimed at; {:.1} ms ({}) and \
         {:.1} ms (its handler in a plain loop) were reached.",
        aim.fresh_us / 1000.0,
        aim.booted_us / 1000.0,
        anew / 1000.0,
        system.title(),
        booted / 1000.0,
    ))
}

/// Returns the description for the form that takes seconds.
pub fn light() -> String {
    let Weight { variants, parts } = Weight::LIGHT;
    format!(
        "The application is the lab's own shop API, not Sylius: Symfony with Doctrine ORM, {variants} variants of a product and {parts} \
         services that are built at boot. In this form its weight was not measured."
    )
}

/// Returns the position where a line through two points reaches a height.
fn meet(height: f64, (x1, y1): (u32, f64), (x2, y2): (u32, f64), most: u32) -> u32 {
    let slope = (y2 - y1) / (f64::from(x2) - f64::from(x1));
    if slope <= 0.0 {
        return most;
    }
    (f64::from(x1) + (height - y1) / slope).round().clamp(0.0, f64::from(most)) as u32
}

/// Returns the processor time of one request in a system with one process.
fn fresh_us(stage: &Stage, system: &dyn System, case: &Case, interrupt: &Interrupt) -> Result<f64> {
    let address = free_address()?;
    let site = Site { workers: 1, processes: Some(1), ..stage.site(case, address)? };
    let running = system.start(&site)?;
    let target = stage.target(case, address, case.path.clone());
    let measured = wait_until_ready(&running, &target, interrupt).and_then(|()| {
        let ask = |times: u32| (0..times).try_for_each(|_| client::ask(&target, Duration::from_secs(30)).map(|_| ()));
        ask(WARM)?;
        let (roots, role) = (running.roots(), |name: &str| system.role(name));
        let before = Reading::take(&roots, &role, &[]);
        ask(MEASURED)?;
        let spent = Reading::take(&roots, &role, &[]).cpu_since(&before);
        Ok(spent.system_seconds() * 1e6 / f64::from(MEASURED))
    });
    let stopped = running.stop();
    stage.discard(&site);
    let measured = measured?;
    stopped?;
    Ok(measured)
}

/// Checks that a directory of the user contains Sylius; the error names what is missing.
pub fn check_sylius(app: &Path) -> Result<()> {
    let has = |name: &str| app.join(name).exists();
    let lacking: Vec<&str> = ["composer.json", "vendor/autoload.php", "bin/console", "public/index.php"]
        .into_iter()
        .filter(|name| !has(name))
        .collect();
    if !lacking.is_empty() {
        anyhow::bail!("{} is not an installed Sylius: {} is missing", app.display(), lacking.join(" and "));
    }
    let composer = std::fs::read_to_string(app.join("composer.json"))?;
    if !composer.contains("sylius/") {
        anyhow::bail!("{} does not require Sylius: its composer.json names no package of sylius/", app.display());
    }
    apps::console(app, &["cache:warmup", "--env=prod", "--no-debug"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_on_a_line_stay_within_limits() {
        assert_eq!(meet(50.0, (20, 10.0), (80, 40.0), 400), 100);
        assert_eq!(meet(5000.0, (20, 10.0), (80, 40.0), 400), 400);
        assert_eq!(meet(1.0, (20, 10.0), (80, 40.0), 400), 2);
        assert_eq!(meet(50.0, (20, 10.0), (80, 10.0), 400), 400);
    }

    #[test]
    fn a_directory_without_sylius_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("composer.json"), "{}").unwrap();
        let error = check_sylius(dir.path()).unwrap_err().to_string();
        assert!(error.contains("vendor/autoload.php and bin/console and public/index.php is missing"), "{error}");
    }
}
