//! What scenarios of snapshot mode boot: a file of theirs, and perhaps one script that does whatever it is sent.

use howdah_tests::{Request, Setup, Site};

/// One worker, or the process that others are forked from, has run this code.
pub(super) fn booted(setup: Setup, code: &str) -> Setup {
    setup
        .workers(1)
        .ini("opcache.file_update_protection", "0")
        .boot("boot.php")
        .file("boot.php", format!("<?php\n{code}\n"))
}

/// The same with a script that runs the code it is sent (`answer`), with the variables of the boot.
pub(super) fn obeying(setup: Setup, code: &str) -> Setup {
    booted(setup, code).file("do.php", "<?php\neval(file_get_contents('php://input'));\n")
}

/// What the code prints, run in a request.
pub(super) fn answer(site: &Site, code: &str) -> String {
    site.send(&Request::post("/do.php", "text/plain", code)).text()
}

/// The worker's process.
pub(super) fn pid(site: &Site) -> String {
    answer(site, "echo getmypid();")
}
