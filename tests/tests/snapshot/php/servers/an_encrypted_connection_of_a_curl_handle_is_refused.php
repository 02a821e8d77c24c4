<?php
$curl = curl_init('https://127.0.0.1:__PORT__/');
curl_setopt_array($curl, [CURLOPT_CONNECT_ONLY => true, CURLOPT_SSL_VERIFYPEER => false, CURLOPT_SSL_VERIFYHOST => 0]);
if (!curl_exec($curl)) {
    throw new Exception(curl_error($curl));
}
