<?php
usleep(10);
spl_autoload_register($load = function () {
    usleep(60000);
});
class_exists('Nothing');
spl_autoload_unregister($load);
usleep(10);
$used = fn () => ($u = getrusage())['ru_utime.tv_sec'] * 1e6 + $u['ru_utime.tv_usec'];
$until = $used() + 60000;
while ($used() < $until) {}
usleep(10);
usleep(10);
echo 'ok';
