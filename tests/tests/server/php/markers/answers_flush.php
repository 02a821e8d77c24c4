<?php
while (ob_get_level()) {
    ob_end_flush();
}
echo $_GET['m'];
flush();
usleep(random_int(0, 500));
echo ' ', $_GET['m'];
