<?php
echo json_encode([$_SERVER['REMOTE_ADDR'], $_SERVER['HTTPS'] ?? '', $_SERVER['REQUEST_SCHEME'], $_SERVER['HTTP_HOST'] ?? '',
    $_SERVER['SERVER_PORT']]);
