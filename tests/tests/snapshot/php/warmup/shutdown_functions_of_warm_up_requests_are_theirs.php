<?php
static $booted = false;
if (!$booted) {
    $booted = true;
    register_shutdown_function(function () {
        mark('lazy');
    });
}
register_shutdown_function(function () {
    mark('request');
});
if (isset($_GET['exit'])) {
    exit('left');
}
echo 'ok';
