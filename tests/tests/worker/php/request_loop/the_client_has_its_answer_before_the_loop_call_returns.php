<?php
require 'gate.php';
$last = '';
$handle = function () use (&$last) {
    $last = $_GET['name'] ?? '';
    echo 'answer ', $last;
};
while (frankenphp_handle_request($handle)) {
    if ($last === 'held') {
        gate('g');
        echo 'nobody reads this';
        mark('seen-' . $_GET['name'] . headers_sent());
    }
}
