<?php
__ODD__;
$driver = new mysqli_driver();
meet('a');
mysqli_report($odd ? MYSQLI_REPORT_OFF : MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
if ($odd) {
    @new mysqli('127.0.0.1', 'nobody', '', '', 1);
}
meet('b');
echo $driver->report_mode === ($odd ? 0 : 3) ? $m : "mode $driver->report_mode", mysqli_connect_errno() === ($odd ? 2002 : 0) ? '' : mysqli_connect_errno();
