<?php
$first = require __DIR__.'/part.php';
usleep(3000);
$by_root = require $_SERVER['DOCUMENT_ROOT'].'/part.php';
usleep(3000);
echo $first, '|', $by_root, '|', file_get_contents($_SERVER['DOCUMENT_ROOT'].'/release.txt'), '|',
    basename(dirname($_SERVER['SCRIPT_FILENAME'], 2)), '|', basename(dirname($_SERVER['DOCUMENT_ROOT']));
