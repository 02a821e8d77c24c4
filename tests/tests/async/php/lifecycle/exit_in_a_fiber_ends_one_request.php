<?php
$f = new Fiber(function () use ($m) {
    usleep(1000);
    exit("left $m");
});
$f->start();
echo 'not reached';
