<?php
spl_autoload_register($load = function ($c) {
    usleep(10);
});
class_exists('Nothing');
spl_autoload_unregister($load);
usleep(10);
error_log("the {$_GET['name']} request ends");
echo 'ok';
