<?php
header('X-Test: a "quoted" one');
error_log('a first message');
error_log("one of\ntwo lines");
echo str_repeat('x', intval($_GET['n'] ?? 1));
flush();
trigger_error('at the end', E_USER_WARNING);
