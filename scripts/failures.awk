# Prints the failed tests in the output of `cargo test`, each with the first lines of its message, without stack traces.
# The runner prints everything, but its report is long and other reports follow. A test that was reported as slow and
# has no result was still running when the runner was ended.

function end_of_report() { if (name != "") { if (!shown) print "    (no message)"; name = "" } }

/^test .* has been running for over [0-9]+ seconds$/ { running[$2] = 1 }
/^test .* \.\.\. / { delete running[$2] }
/^---- .* stdout ----$/ {
    end_of_report()
    name = $2; shown = 0; skipping = 0
    print "failed: " name
    next
}
name == "" { next }
/^(failures:|test result:|error: )/ { end_of_report(); next }
# A thread's panic begins a message; output before it cannot be attributed to a test.
/^thread .* panicked at / { skipping = 0; if (shown < 15) { print "    " $0; shown++ } next }
/^(stack backtrace:|log of the server:|note: )/ { skipping = 1; next }
!skipping && NF && shown && shown < 15 { print "    " $0; shown++ }
END {
    end_of_report()
    for (name in running) print "did not end: " name
}
