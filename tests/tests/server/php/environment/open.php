<?php
// Open descriptors of this process, then those of a program that it starts.
foreach (glob('/proc/self/fd/*') as $link) {
    echo @readlink($link), "\n";
}
passthru('ls -l /proc/self/fd');
