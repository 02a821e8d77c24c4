<?php
$s = stream_socket_client('tcp://127.0.0.1:PORT');
fwrite($s, "$m\n");
echo trim(fgets($s)), feof($s) || fgets($s) === false ? ' end' : ' more';
