<?php
$open = fn (bool $verify) => new PDO("mysql:host=127.0.0.1;port=$port", 'tester', '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT => $verify, PDO::MYSQL_ATTR_SSL_CA => '/etc/ssl/certs/ca-certificates.crt']);
meet('a');
try {
    @$open(true);
    echo 'trusted';
} catch (PDOException $e) {
    echo 'refused';
}
$tls = $open(false);
meet('b');
echo $tls->query("SHOW STATUS LIKE 'Ssl_cipher'")->fetchColumn(1) ? ' encrypted ' : ' plain ', $tls->query("SELECT '$m'")->fetchColumn();
