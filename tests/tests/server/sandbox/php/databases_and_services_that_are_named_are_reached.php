<?php
$r = [];
foreach (['host=127.0.0.1;port=__PORT__', 'unix_socket=__SOCKET__'] as $where) $r[] = (new PDO("mysql:$where", strpos($where, 'socket') ? 'root' : 'tester', ''))->query('SELECT 6 * 7')->fetchColumn();
$c = curl_init('https://localhost:__NUMBER__/');
curl_setopt_array($c, [CURLOPT_RETURNTRANSFER => true, CURLOPT_CAINFO => '__PATH__/cert.pem']);
$r[] = str_contains((string) curl_exec($c), 's_server') ?: curl_error($c);
echo json_encode($r);
