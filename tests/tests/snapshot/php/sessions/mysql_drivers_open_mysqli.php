<?php
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$db = new mysqli('127.0.0.1', 'tester', '', 'shop', __PORT__);
$db->set_charset('utf8mb4');
