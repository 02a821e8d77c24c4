<?php
http_response_code(206);
header('Content-Range: bytes 0-49999/100000');
header('Content-Type: text/html');
echo str_repeat('r', 50000);
