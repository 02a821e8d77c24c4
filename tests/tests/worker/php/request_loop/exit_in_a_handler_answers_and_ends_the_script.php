<?php
class D {
    function __destruct() {
        echo ' destroyed';
    }
}
register_shutdown_function(fn () => print(' shutdown'));
$handle = function () {
    if (isset($_GET['exit'])) {
        http_response_code(500);
        $GLOBALS['d'] = new D;
        echo 'dump';
        exit(0);
    }
    echo getmypid();
};
