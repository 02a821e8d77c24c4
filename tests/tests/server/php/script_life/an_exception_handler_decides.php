<?php
set_exception_handler(function ($e) {
    http_response_code(422);
    echo 'handled ', $e->getMessage();
});
throw new Exception('it');
