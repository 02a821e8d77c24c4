<?php
require_once __DIR__ . '/late.php';
session_set_save_handler(new Late($m), false);
strtok("$m $m", ' ');
@trigger_error("early $m");
$own = [$m];
meet('a');
echo $m;
