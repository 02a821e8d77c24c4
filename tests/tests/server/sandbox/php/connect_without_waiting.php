<?php
$c = stream_socket_client('tcp://127.0.0.1:' . P, $e, $s, 2, STREAM_CLIENT_ASYNC_CONNECT);
return $c && fwrite($c, 'x') === 1;
