<?php
require 'gate.php';
header('Content-Type: text/plain');
echo 'one';
fastcgi_finish_request();
gate('after');
mark('end');
