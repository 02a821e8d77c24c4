<?php
$db = mysqli_init();
$db->ssl_set(null, null, null, null, null);
$db->real_connect('127.0.0.1', 'tester', '', '', __PORT__, null, MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT);
if ($db->query("SHOW STATUS LIKE 'Ssl_cipher'")->fetch_row()[1] === '') {
    throw new Exception('not encrypted');
}
