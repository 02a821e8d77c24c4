<?php
$p = proc_open(['sleep', '60'], [], $pipes);
echo proc_get_status($p)['pid'];
proc_terminate($p);
proc_close($p);
