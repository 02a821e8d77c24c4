<?php
echo json_encode([getenv('APP_ENV'), $_SERVER['APP_ENV'] ?? null, getenv('APP_TEXT'), getenv('PATH') !== '']);
putenv('APP_ENV=changed');
