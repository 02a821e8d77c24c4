<?php
header('Link: </style.css>; rel=preload; as=style');
$sent = headers_send(103);
header_remove('Link');
header('X-Final: yes');
require 'gate.php';
if (isset($_GET['gate'])) {
    gate('g');
}
http_response_code(404);
echo 'found nothing ', $sent;
