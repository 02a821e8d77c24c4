<?php
set_error_handler(function (int $type, string $text) {
    throw new ErrorException("the application was asked: $text");
});
header('X-Application: ran');
echo count($_POST), ' fields';
