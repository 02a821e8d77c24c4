<?php
echo str_repeat('x', 100000);
flush();
usleep(1000);
if (isset($_GET['die'])) {
    posix_kill(getmypid(), 9);
}
echo str_repeat('y', 200000);
