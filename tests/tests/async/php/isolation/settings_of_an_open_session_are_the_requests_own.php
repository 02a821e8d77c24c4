<?php
session_id("id$m");
session_start(['gc_maxlifetime' => 1000 + strlen($m), 'use_strict_mode' => 0]);
$_SESSION['m'] = $m;
meet('a');
pause();
$lifetime = ini_get('session.gc_maxlifetime');
session_write_close();
meet('b');
echo $lifetime == 1000 + strlen($m) ? $m : $lifetime;
