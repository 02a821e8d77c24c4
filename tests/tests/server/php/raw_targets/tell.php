<?php
echo json_encode(array_map(bin2hex(...), [$_SERVER['REQUEST_URI'], $_SERVER['QUERY_STRING'],
    $_SERVER['DOCUMENT_URI'], $_SERVER['PATH_INFO'] ?? '', ...array_keys($_GET), ...array_values($_GET)]));
