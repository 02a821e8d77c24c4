<?php
$handle = function () {
    if (isset($_GET['use'])) {
        require __DIR__ . '/late.php';
    } else {
        echo 'none';
    }
};
