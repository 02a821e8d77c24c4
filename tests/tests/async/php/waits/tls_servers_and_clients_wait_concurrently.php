<?php
$pem = dirname(__DIR__) . '/marks/cert.pem';
$server = stream_socket_server('tcp://127.0.0.1:0', $no, $text, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, stream_context_create(['ssl' => ['local_cert' => $pem]]));
$task = Howdah\go(function () use ($server, $m) {
    $c = stream_socket_accept($server, 50);
    stream_set_blocking($c, true);
    if (@stream_socket_enable_crypto($c, true, STREAM_CRYPTO_METHOD_TLS_SERVER)) {
        $line = fgets($c);
        usleep(1000);
        fwrite($c, "hello $line");
    }
    fclose($c);
});
$address = substr(strrchr(stream_socket_get_name($server, false), ':'), 1);
meet('a');
$verify = ['cafile' => isset($_GET['bad']) ? null : $pem, 'peer_name' => 'async.test', 'verify_peer' => true];
if (isset($_GET['bad'])) {
    unset($verify['cafile']);
}
$c = @stream_socket_client("ssl://127.0.0.1:$address", $no, $text, 50, STREAM_CLIENT_CONNECT, stream_context_create(['ssl' => $verify]));
if ($c) {
    fwrite($c, "$m\n");
    echo trim(fgets($c)), ' ', stream_get_meta_data($c)['crypto']['protocol'] ? 'tls' : '';
} else {
    echo "refused $m";
}
Howdah\await($task);
