//! The sandbox of a pool's workers: Landlock for files, TCP ports and signals, seccomp for system calls.
//!
//! The zygote creates the profile once, when PHP has started and its settings are known (`prepare`). The zygote itself
//! stays unrestricted, because it forks and reaps. Each worker restricts itself after its fork, before it runs any
//! application code (`enter`). A snapshot pool's template is forked from such a worker and inherits everything, and so
//! do the workers forked from it; they only separate themselves from each other (`enter_sibling`). Programs started by
//! scripts inherit it too; no restriction can be removed.

mod application;
mod capabilities;
mod filesystem;
mod kernel;
pub(crate) mod learn;
mod profile;
mod refusals;
mod report;
mod system_calls;
mod temporary;

pub(crate) use report::print as print_report;
pub(crate) use temporary::PrivateDirectory;

use crate::{child, php};
use howdah_transport::SandboxProfile;
use howdah_transport::zygote_protocol::BootSpec;
use profile::Profile;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

/// Restrictions that the running kernel supports.
pub(crate) fn of_this_kernel() -> kernel::KernelSupport {
    kernel::KernelSupport::of_this_kernel()
}

/// Exit status of a worker that could not restrict itself.
const NOT_RESTRICTED: i32 = 72;

/// The sandbox of every worker of this zygote.
enum Plan {
    /// The profile, and the filters of system calls, which are the same for all workers.
    App { profile: Profile, filters: system_calls::Filters, means: kernel::KernelSupport },
    /// Nothing is restricted; a listener for system calls is sent to the learner over this socket.
    Learn { calls: system_calls::Program, learner: OwnedFd },
}

/// Set in the zygote before its first fork.
static PLAN: OnceLock<Plan> = OnceLock::new();

/// Creates the plan, in the zygote, after PHP has started. An error keeps the pool from starting.
pub(crate) fn prepare(spec: &BootSpec) -> Result<Option<learn::Learner>, String> {
    let fail = |why: String| format!("sandbox: {why}");
    let plan = match spec.sandbox.profile {
        SandboxProfile::Off => return Ok(None),
        SandboxProfile::App => app(spec).map_err(fail)?,
        SandboxProfile::Learn => {
            let profile = Profile::of(spec, &php::setting).map_err(fail)?;
            let (calls, groups) = system_calls::watched(&profile).map_err(fail)?;
            let (learner, register) = learn::Learner::start(profile, groups)
                .map_err(|error| format!("sandbox: cannot start the learner: {error}"))?;
            let _ = PLAN.set(Plan::Learn { calls, learner: register });
            return Ok(Some(learner));
        }
    };
    let _ = PLAN.set(plan);
    Ok(None)
}

fn app(spec: &BootSpec) -> Result<Plan, String> {
    let profile = Profile::of(spec, &php::setting)?;
    let means = kernel::KernelSupport::of_this_kernel();
    let missing = means.missing();
    if !missing.is_empty() {
        let missing = missing.join("; ");
        if spec.sandbox.required {
            return Err(format!(
                "this kernel does not restrict {missing}. `required = false` runs the pool without that"
            ));
        }
        eprintln!("sandbox: WEAKER THAN CONFIGURED: this kernel does not restrict {missing}");
    }
    for (path, origin) in profile.make_directories() {
        eprintln!("sandbox: cannot create {} ({origin}), so scripts cannot write to it", path.display());
    }
    let filters = system_calls::Filters::of(&profile, &means)?;
    php::sandbox_code(&profile.code_rules(), !profile.runs_programs());
    Ok(Plan::App { profile, filters, means })
}

/// Restricts this worker irrevocably. Called after the last step that needs the zygote's rights, and before the worker
/// runs any application code. A worker that cannot be restricted ends.
pub(crate) fn enter() {
    let entered = match PLAN.get() {
        None => Ok(()),
        Some(Plan::App { profile, filters, means }) => {
            refusals::install();
            // Landlock first: the filters refuse nothing that it needs, but make each call slightly slower.
            capabilities::give_up()
                .and_then(|()| filesystem::restrict(profile, means))
                .and_then(|()| filters.apply(means))
        }
        Some(Plan::Learn { calls, learner }) => learn::enter(calls, learner),
    };
    or_end(entered);
}

/// Separates this worker from its siblings, whose restrictions it has inherited: otherwise they could signal and trace
/// each other.
pub(crate) fn enter_sibling() {
    let entered = match PLAN.get() {
        Some(Plan::App { means, .. }) => filesystem::separate(means),
        Some(Plan::Learn { .. }) => learn::enter_sibling(),
        None => Ok(()),
    };
    or_end(entered);
}

/// Separates this worker from its forks, which have its restrictions and could otherwise be signalled by it.
pub(crate) fn separate_from_forks() {
    if let Some(Plan::App { means, .. }) = PLAN.get() {
        or_end(filesystem::separate(means));
    }
}

fn or_end(entered: Result<(), String>) {
    if let Err(why) = entered {
        eprintln!("sandbox: cannot restrict a worker, ending it: {why}");
        child::exit(NOT_RESTRICTED);
    }
}
