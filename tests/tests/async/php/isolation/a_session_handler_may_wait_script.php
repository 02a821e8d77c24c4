<?php
require_once __DIR__ . '/kept.php';
session_set_save_handler(new Kept($m));
session_id("id$m");
session_start(['use_strict_mode' => 0]);
$_SESSION['m'] = 1;
meet('a');
session_write_close();
meet('b');
echo Kept::$all["id$m"];
