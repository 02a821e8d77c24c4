<?php
// The responding PHP version, and its files that are mapped in this process.
preg_match_all('~\s(/\S*libphp\S*)~', file_get_contents('/proc/self/maps'), $found);
echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION, ' ', implode(' ', array_unique($found[1]));
