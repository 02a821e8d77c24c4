<?php

/** The same application as worker.php, for classic mode. */

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
header('Content-Type: text/html');
echo $path === '/basket' ? 'put' : '<a href="/basket">basket</a>';
