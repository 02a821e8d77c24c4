<?php
header('X-A: 1');
header('X-B: 2');
echo json_encode([getallheaders()['X-Sent'], apache_request_headers()['X-Sent'],
    headers_sent(), headers_list(), function_exists('apache_response_headers') ? apache_response_headers()['X-A'] : '1',
    http_response_code()]);
