<?php
header('X-Powered-By: somebody');
header('Content-Type: ' . ($_GET['type'] ?? 'text/plain'));
header('Content-Disposition: attachment; filename="f.txt"');
header('Cache-Control: private, max-age=5');
header('ETag: "of-the-script"');
header('Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT');
header('Location: /elsewhere', true, 201);
setcookie('a', '1');
setcookie('b', '2');
header($_GET['field'] . ': ' . $_GET['name']);
echo 'what the script printed';
