<?php
require 'gate.php';
if (mark('tries') <= ($_GET['times'] ?? 1)) {
    posix_kill(getmypid(), (int) $_GET['signal']);
    sleep(5);
}
echo 'alive';
