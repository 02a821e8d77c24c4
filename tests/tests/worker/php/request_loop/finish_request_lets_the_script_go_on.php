<?php
$handle = function () {
    echo 'first';
    $r = [frankenphp_finish_request(), frankenphp_finish_request(), Howdah\finish_request()];
    echo 'second';
    mark('rest-' . json_encode($r) . connection_aborted() . strlen(file_get_contents('php://input')));
};
