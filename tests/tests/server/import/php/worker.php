<?php
$handle = function () {
    header('Content-Type: text/plain');
    echo 'in a worker ', $_SERVER['REQUEST_URI'];
};
while (frankenphp_handle_request($handle)) {
}
