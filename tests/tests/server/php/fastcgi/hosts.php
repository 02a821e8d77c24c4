<?php
if (isset($_GET['accel'])) {
    header('X-Accel-Redirect: /private/private.txt');
    echo 'not sent';
} elseif (isset($_GET['sendfile'])) {
    header('X-Sendfile: ' . dirname(__DIR__) . '/private.txt');
    echo 'left to the web server';
} else {
    echo $_SERVER['DOCUMENT_ROOT'], ' ', __FILE__;
}
