<?php
// Uses a processor for some milliseconds, and reports the nice value.
for ($until = hrtime(true) + 4_000_000, $x = 1; hrtime(true) < $until;) {
    $x = ($x * 1103515245 + 12345) & 0x7fffffff;
}
echo explode(' ', explode(') ', file_get_contents('/proc/self/stat'))[1])[16];
