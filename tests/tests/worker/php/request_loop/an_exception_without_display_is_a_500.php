<?php
$handle = function () {
    if (isset($_GET['throw'])) {
        throw new Exception('thrown unseen');
    }
    echo getmypid();
};
