<?php
header('X-Mark: ' . $_SERVER['HTTP_X_MARK']);
header('X-More: a' . getallheaders()['X-Mark'], false);
setcookie('mark', $_COOKIE['m']);
http_response_code(200 + strlen($_COOKIE['m']));
