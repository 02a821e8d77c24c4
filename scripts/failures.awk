# Tells from the output of `cargo test` which tests failed, each with the first lines of what it said, without stack
# traces. The runner tells it all, but its report is long and other reports follow. A test that was slow and has no result
# was still running when the runner was ended.

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
# A thread's panic begins a message; what is printed before it is said by nobody in particular.
/^thread .* panicked at / { skipping = 0; if (shown < 15) { print "    " $0; shown++ } next }
/^(stack backtrace:|log of the server:|note: )/ { skipping = 1; next }
!skipping && NF && shown && shown < 15 { print "    " $0; shown++ }
END {
    end_of_report()
    for (name in running) print "did not end: " name
}
