<?php
if (!class_exists('D', false)) {
    class D {
        function __destruct() {
            echo ' destruct';
        }
    }
}
global $d;
$d = new D;
register_shutdown_function(function () {
    echo ' shutdown ', connection_status();
    register_shutdown_function(fn () => print(' nested'));
});
echo 'main';
exit;
