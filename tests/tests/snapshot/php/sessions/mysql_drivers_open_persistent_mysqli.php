<?php
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$db = new mysqli('p:127.0.0.1', 'tester', '', 'shop', __PORT__);
