//! Counts instructions and heap allocations of the server with callgrind. The file format is documented at
//! valgrind.org, "Callgrind: a call-graph generating cache profiler".

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::server::Server;
use super::{COUNTED, Case, WARM, client};

/// Returns the server's instructions and allocations per request.
pub(super) fn count(case: &Case, app: &Path) -> Result<(f64, f64)> {
    let output = tempfile::tempdir()?;
    let file = output.path().join("counts");
    let tool = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"].map(str::to_owned);
    let tool = [tool.as_slice(), &[format!("--callgrind-out-file={}", file.display())]].concat();
    let server = Server::start(case, app, &tool)?;
    client::ask(server.address, case, WARM)?;
    let (process, _) = server.processes()?;
    control(&["-i", "on"], process)?;
    client::ask(server.address, case, COUNTED)?;
    control(&["-i", "off"], process)?;
    // The dump at the server's end contains only later events.
    control(&["-d"], process)?;
    server.stop()?;
    let text = fs::read_to_string(written(output.path())?)?;
    let instructions = total(&text).context("callgrind's file has no total")?;
    Ok((instructions / f64::from(COUNTED), allocations(&text) / f64::from(COUNTED)))
}

fn control(arguments: &[&str], process: u32) -> Result<()> {
    let output = Command::new("callgrind_control").args(arguments).arg(process.to_string()).output();
    let output = output.context("cannot start callgrind_control")?;
    if !output.status.success() {
        bail!("callgrind_control: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Returns the dump; the file written at the server's end is nearly empty.
fn written(directory: &Path) -> Result<std::path::PathBuf> {
    let files = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
    let largest = files.max_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len()));
    largest.context("callgrind has written nothing")
}

/// Returns all instructions, from the line `totals: N`. (`summary:` is 0 if only a part of the run was counted.)
fn total(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

/// Returns the calls of the allocator's functions by other functions. `fn=` begins the entries of one function, `cfn=`
/// and `calls=` give its callees and the number of calls. A name is written once as `(7) name`, and later as `(7)`.
fn allocations(text: &str) -> f64 {
    let mut names = std::collections::HashMap::new();
    let mut is_allocator = |word: &str| {
        let (number, name) = word.split_once(' ').unwrap_or((word, ""));
        if !name.is_empty() {
            names.insert(number.to_owned(), allocates(name));
        }
        names.get(number).copied().unwrap_or(Part::Other)
    };
    let (mut within, mut called, mut count) = (Part::Other, Part::Other, 0_u64);
    for line in text.lines() {
        if let Some(word) = line.strip_prefix("fn=") {
            within = is_allocator(word);
        } else if let Some(word) = line.strip_prefix("cfn=") {
            called = is_allocator(word);
        } else if let Some(calls) = line.strip_prefix("calls=")
            && (within, called) == (Part::Other, Part::Allocates)
        {
            count += calls.split(' ').next().and_then(|calls| calls.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    count as f64
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Allocates,
    /// Another function of the allocator, such as `free`.
    Allocator,
    Other,
}

fn allocates(name: &str) -> Part {
    let plain = name.trim_start_matches('_');
    match plain {
        _ if !plain.starts_with("mi_") => Part::Other,
        _ if ["malloc", "zalloc", "calloc", "realloc"].iter().any(|word| plain.contains(word)) => Part::Allocates,
        _ => Part::Allocator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_counted_where_others_call_the_allocator() {
        let text = "summary: 0\nfn=(1) howdah::serve\n1 5\ncfn=(2) mi_malloc_aligned\ncalls=3 0\n1 9\ncfn=(3) mi_free\ncalls=2 0\n1 4\n\
                    fn=(2)\n1 7\ncfn=(4) _mi_malloc_generic\ncalls=3 0\n1 2\nfn=(5) other\ncfn=(2)\ncalls=4 0\n1 1\n\
                    totals: 28\n";
        assert_eq!((allocations(text), total(text)), (7.0, Some(28.0)));
    }
}
