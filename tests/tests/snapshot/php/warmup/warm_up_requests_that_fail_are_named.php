<?php
switch (strtok($_SERVER['REQUEST_URI'], '?')) {
    case '/page': throw new RuntimeException('not configured');
    case '/other': http_response_code(404);
    echo 'nothing';
    break;
    default: echo 'served';
}
