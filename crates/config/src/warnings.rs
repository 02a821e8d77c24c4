//! Warnings about valid settings, shown by `howdah check` and at start.

use std::path::Path;

use crate::check_mercure;
use crate::choice::Mode;
use crate::load::Loaded;
use crate::log_target::{AccessTarget, LogTarget};
use crate::origin::Origin;
use crate::settings::PoolSettings;
use crate::source::Environment;
use crate::unknown_variables::unknown_variables;
use howdah_rules::{Rule, presets};

const CONFIGURATION: &str = "the configuration";

impl Loaded {
    /// All warnings, one line each.
    pub fn warnings(&self) -> Vec<String> {
        let mut found = self.adjusted.clone();
        self.private_files_below_the_root(&mut found);
        self.missing_php(&mut found);
        let variables = unknown_variables(&Environment::of_process().env);
        found.extend(variables.iter().filter(|variable| variable.is_slip()).map(ToString::to_string));
        self.settings_of_snapshots_that_do_nothing(&mut found);
        self.snapshots_without_warm_up(&mut found);
        self.paths_open_above_protected_ones(&mut found);
        self.silent_sites(&mut found);
        found.extend(check_mercure::short_secrets(&self.settings.all_sites()));
        found
    }

    /// PHP is missing, but no version was set: static files are still served.
    fn missing_php(&self, found: &mut Vec<String>) {
        let environment = Environment::of_process();
        let missing = self.settings.pools.iter().find_map(|pool| pool.php.binary.missing(&environment));
        found.extend(missing.map(|missing| format!("no PHP will run: {missing}")));
    }

    /// `/admin/*` does not match `/admin`, which is a page of the application if there is a front controller.
    fn paths_open_above_protected_ones(&self, found: &mut Vec<String>) {
        for site in self.settings.all_sites() {
            if site.front_controller.is_none() {
                continue;
            }
            // An application's rules are about its directories; only the user's own rules are checked.
            let of_application = |rule: &Rule| {
                presets::NAMES.iter().any(|app| rule.name.strip_prefix(app).is_some_and(|rest| rest.starts_with('-')))
            };
            for (rule, path) in site.rules.open_above().filter(|(rule, _)| !of_application(rule)) {
                found.push(format!(
                    "{}: {path}/* is protected and {path} is not, which may be the same page: write path = [\"{path}\", \"{path}/*\"]",
                    rule.name
                ));
            }
        }
    }

    /// Boot files and warm-ups without effect: only a snapshot keeps their results.
    fn settings_of_snapshots_that_do_nothing(&self, found: &mut Vec<String>) {
        for pool in self.settings.pools.iter().filter(|pool| pool.mode != Mode::Snapshot) {
            let keys = [("boot", pool.boot.is_some()), ("warmup", !pool.warmup.is_empty())];
            for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set) {
                let (name, mode) = (&pool.name, pool.mode);
                found.push(format!(
                    "{key} of the pool {name} has no effect in mode \"{mode}\": only snapshot pools have one"
                ));
            }
        }
    }

    /// A framework that is booted by a script's first request would be booted again in each request.
    fn snapshots_without_warm_up(&self, found: &mut Vec<String>) {
        let is_cold = |pool: &&PoolSettings| {
            pool.mode == Mode::Snapshot && pool.boot.is_none() && pool.warmup.is_empty() && !pool.warmup_auto
        };
        for pool in self.settings.pools.iter().filter(is_cold) {
            found.push(format!(
                "the pool {} takes its snapshot without a warm-up, so each request loads its code again: set warmup \
                 to typical paths, or warmup_auto",
                pool.name
            ));
        }
    }

    /// Private files below the root. The server does not send them, but another server for the same directory would,
    /// and so would this one if they were copied under other names.
    fn private_files_below_the_root(&self, found: &mut Vec<String>) {
        let settings = &self.settings;
        if settings.only_web_servers() {
            return;
        }
        // The top level's root is served only if there are no sites.
        let roots: Vec<&Path> = match &settings.sites[..] {
            [] => vec![&settings.root],
            sites => sites.iter().map(|site| &*site.root).collect(),
        };
        let chosen = settings.sites.is_empty() && self.origins.of("root") != Origin::Default;
        let roots: Vec<_> = roots.into_iter().filter_map(|root| Some((root, root.canonicalize().ok()?))).collect();
        let mut look = |what: &str, path: &Path| {
            let Some(real) = path.canonicalize().ok().filter(|real| real.is_file()) else { return };
            // With `root = "."`, as `howdah init` writes it, this file is there on purpose.
            let is_meant = |root: &Path| chosen && what == CONFIGURATION && real.parent() == Some(root);
            let below = roots.iter().find(|(_, root)| real.starts_with(root) && !is_meant(root));
            if let Some((root, _)) = below {
                let (path, root) = (path.display(), root.display());
                found.push(format!(
                    "{what} {path} is below the document root {root}: it is never sent, but move it elsewhere"
                ));
            }
        };
        if let Some(file) = &settings.config_file {
            look(CONFIGURATION, file);
        }
        let mut inis: Vec<_> = settings.pools.iter().filter_map(|pool| pool.php.config.clone()).collect();
        inis.dedup();
        for ini in inis {
            let file = if ini.is_dir() { ini.join("php.ini") } else { ini };
            look("php.config", &file);
        }
        if let LogTarget::File(file) = &settings.log.error {
            look("the error log", file);
        }
        for pool in &settings.pools {
            if let (Some(_), LogTarget::File(file)) = (pool.slow_log_after, &pool.slow_log) {
                look("the slow log", file);
            }
        }
        if let AccessTarget::File(file) = &settings.log.access {
            look("the access log", file);
        }
    }
}
