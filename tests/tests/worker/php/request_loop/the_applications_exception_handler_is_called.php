<?php
set_exception_handler(function ($e) {
    http_response_code(503);
    echo 'handled ', $e->getMessage();
});
$handle = function () {
    if (isset($_GET['throw'])) {
        throw new Exception('this');
    }
    echo getmypid();
};
