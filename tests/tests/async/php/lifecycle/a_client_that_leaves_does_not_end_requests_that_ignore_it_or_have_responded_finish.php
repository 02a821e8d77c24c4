<?php
require_once __DIR__ . '/gate.php';
echo 'one';
fastcgi_finish_request();
gate('finish');
mark('finished');
