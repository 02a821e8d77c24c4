<?php
$c = curl_init('telnet://127.0.0.1:' . P);
curl_setopt($c, CURLOPT_CONNECT_ONLY, true);
return curl_exec($c);
