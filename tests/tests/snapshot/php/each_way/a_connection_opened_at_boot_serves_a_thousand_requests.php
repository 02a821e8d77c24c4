<?php
$redis = stream_socket_client('tcp://127.0.0.1:__PORT__');
function ask($text) {
    global $redis;
    fwrite($redis, "$text\r\n");
    return trim(fgets($redis));
}
ask('SET n 0');
