<?php
global $file;
$seen = '';
for ($i = 0; $i < 5; $i++) {
    $seen .= trim(fgets($file)) . ' ';
    usleep(500);
}
echo $seen, posix_getpid();
