//! Boot files for scenarios of snapshot mode, optionally with one script that runs the code in its request.

use howdah_tests::{Request, Setup, Site};

/// A pool of one worker whose boot file runs this code.
pub(super) fn booted(setup: Setup, code: &str) -> Setup {
    setup
        .workers(1)
        .ini("opcache.file_update_protection", "0")
        .boot("boot.php")
        .file("boot.php", format!("<?php\n{code}\n"))
}

/// As `booted`, with a script that runs the code of its request's body (`answer`), with the variables of the boot.
pub(super) fn obeying(setup: Setup, code: &str) -> Setup {
    booted(setup, code).file("do.php", "<?php\neval(file_get_contents('php://input'));\n")
}

/// Output of the code, run in a request.
pub(super) fn answer(site: &Site, code: &str) -> String {
    site.send(&Request::post("/do.php", "text/plain", code)).text()
}

pub(super) fn pid(site: &Site) -> String {
    answer(site, "echo getmypid();")
}
