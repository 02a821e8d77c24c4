<?php
header('X-Mark: ' . $_GET['m']);
echo $_GET['m'];
fastcgi_finish_request();
@header('X-Late: 1');
echo 'never seen';
require 'gate.php';
mark('finished');
