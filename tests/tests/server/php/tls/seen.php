<?php
$names = preg_grep('/^(SSL_(?!CERT)|HTTPS$|REQUEST_SCHEME$|SERVER_(PROTOCOL|PORT)$)/', array_keys($_SERVER));
header('Content-Type: application/json');
echo json_encode(array_intersect_key($_SERVER, array_flip($names)));
