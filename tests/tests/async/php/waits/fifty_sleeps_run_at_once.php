<?php
static $in = 0;
$in++;
for ($turn = 0; $in < 50 && $turn < 150; $turn++) {
    usleep(300000);
}
echo $m, ' ', $in;
